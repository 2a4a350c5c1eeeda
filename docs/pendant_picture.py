"""Write `_static/pendant.png`, the pendant with the program of its guide: `python docs/pendant_picture.py`.

It needs Chromium, so the file is committed, and the build only copies it.
"""

import io
import re
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from scenarios.abb.background import serving  # noqa: E402
from scenarios.abb.pendant import Pendant  # noqa: E402
from tests.support.browser import browser  # noqa: E402

guide = (DOCS / "guides" / "abb_controller_live.md").read_text(encoding="utf-8")
program, station = (re.search(rf"```{kind}\n(.*?)```", guide, re.DOTALL)[1] for kind in ("text", "toml"))
with TemporaryDirectory() as folder:
    Path(folder, "pick.mod").write_text(program, encoding="utf-8")
    Path(folder, "station.toml").write_text(station, encoding="utf-8")
    with serving(Path(folder, "station.toml"), operator=("yes",)) as running:
        pendant = Pendant(running)
        with browser(Path(folder, "profile")) as open_page:
            page = open_page(pendant.url, 1280, 860)
            page.wait_for("document.body && document.body.innerText.includes('T_ROB1: running')")
            page.click("document.querySelector('[class*=Notification] button')")  # on drawing without a GPU
            running.signals["di_part"] = 1
            running.wait_until(lambda: running.signals["do_grip"] == 1.0)
            time.sleep(1.6)
            drawn = page.screenshot()
        pendant.close()
Image.open(io.BytesIO(drawn)).quantize(192).save(DOCS / "_static" / "pendant.png", optimize=True)
