"""The HTTP service, the only package that imports Starlette and uvicorn."""
