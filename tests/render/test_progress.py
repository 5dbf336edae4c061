"""The progress bar, interrupted while it starts."""

import signal

import pytest
from rich.console import Console

from srvstat.render.progress import show_build_progress

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


@pytest.mark.parametrize("moment", ["set_live", "push_render_hook", "print"])
def test_an_interrupted_bar_leaves_the_cursor_visible(
    moment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    begin = getattr(Console, moment)
    interruptions = [SystemExit(128 + signal.SIGINT)]

    def interrupt(console: Console, *arguments: object) -> object:
        if interruptions:
            raise interruptions.pop()
        return begin(console, *arguments)

    monkeypatch.setattr(Console, moment, interrupt)

    with pytest.raises(SystemExit) as stopped, show_build_progress(None):
        pytest.fail("no interruption")

    shown = capsys.readouterr().err
    assert stopped.value.code == 130
    assert shown.rfind(SHOW_CURSOR) > shown.rfind(HIDE_CURSOR)
    assert (HIDE_CURSOR in shown) == (moment != "set_live")
