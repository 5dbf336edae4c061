"""What the program says: transcripts of commands and of requests, compared by `test_corpus`.

Each file in `transcripts` is a session in a directory of its own. Its commands are the cases, and
the lines below a command are what it said:

    $ srvstat get harbor-city           a command whose output goes to a pipe
    80$ srvstat get harbor-city         the same in a terminal with 80 columns
    $ serve demo.db --explore           start a service in this process
    $ http GET /healthz 'A: b' BODY     send it a request
    $ anything else                     a command for bash

Standard output is indented, `!` marks standard error, and `=` an exit code other than 0.
"""
