"""The HTTP service: the same answers behind another door. Starlette and uvicorn live here."""
