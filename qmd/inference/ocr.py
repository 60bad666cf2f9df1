"""
Reads the text in a picture with rapidocr (the extra ``ocr``), whose models lie in its package.

The first picture imports rapidocr, onnxruntime and OpenCV. A worker process does so, with limits
(`qmd.ingest.read_picture`), and asks no network: the files of the models are named, and rapidocr
downloads only those that are not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qmd.errors import InferenceError
from qmd.values.pictures import PictureLine, PictureText, Pixels

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Lines that are less certain are left out: what looks like them in a photo is none.
_LEAST_SCORE = 0.5
#: A page whose characters are as certain as this on average is upright.
_UPRIGHT_SCORE = 0.85
#: With fewer lines the turn of a picture is not looked for.
_LEAST_LINES = 3
#: The most lines of one picture; more is no page that somebody reads.
_MOST_LINES = 2_000
_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}


class _Reading(NamedTuple):
    """
    What was read at one turn of a picture.

    ``boxes``: float[lines, 4], left, top, right, bottom in pixels of the turned picture.
    ``score``: 0 to 1, the mean of all characters.
    """

    turn: int
    height: int
    boxes: NDArray[np.floating[Any]]
    texts: tuple[str, ...]
    score: float

    @property
    def lies(self) -> bool:
        """Whether the lines run from the top down, so that the page lies on its side."""
        sides = self.boxes[:, 2:] - self.boxes[:, :2]
        lengths = np.array([len(text) for text in self.texts])
        return bool(lengths[sides[:, 1] > sides[:, 0]].sum() > lengths.sum() / 2)


def read(pixels: Pixels) -> PictureText:
    """
    The lines of a picture, each where it is on the upright page.

    Raises:
        InferenceError: The models cannot be loaded.
    """
    best = _read(pixels.rgb, 0)
    if len(best.texts) >= _LEAST_LINES and (best.lies or best.score < _UPRIGHT_SCORE):
        for turn in (270, 90) if best.lies else (180,):
            other = _read(pixels.rgb, turn)
            # On its side a page may be read well, too, but not in the order of its lines.
            if best.lies or other.score > best.score:
                best = other
            if best.score >= _UPRIGHT_SCORE:
                break
    per_point = pixels.per_point
    return PictureText(
        tuple(
            PictureLine(text, *(float(each) / per_point for each in place))
            for text, place in zip(best.texts, _from_below(best), strict=True)
        ),
        best.turn,
    )


def _from_below(reading: _Reading) -> NDArray[np.floating[Any]]:
    """left, bottom, right, top, in pixels from the bottom."""
    left, top, right, bottom = reading.boxes.T
    return np.stack([left, reading.height - bottom, right, reading.height - top], axis=1)


def _read(rgb: NDArray[np.uint8], turn: int) -> _Reading:
    """Read a picture that is turned to the right by so many degrees."""
    image = np.ascontiguousarray(np.rot90(rgb[:, :, ::-1], -turn // 90))
    output: Any = _engine()(image)
    texts = tuple(output.txts or ())[:_MOST_LINES]
    if not texts:
        return _Reading(turn, image.shape[0], np.zeros((0, 4)), (), 0.0)
    corners = _upright(np.asarray(output.boxes, dtype=float)[:_MOST_LINES])
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    lengths = [len(text) for text in texts]
    score = float(np.average(list(output.scores)[:_MOST_LINES], weights=lengths))
    return _Reading(turn, image.shape[0], boxes, texts, score)


def _upright(corners: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """
    float[lines, 4, 2], turned by the few degrees by which a scan is tilted.

    Otherwise the end of a line would stand beside the beginning of the next.
    """
    along = corners[:, 1] - corners[:, 0]
    wide = along[along[:, 0] > np.abs(along[:, 1])]
    if not len(wide):
        return corners
    lengths = np.hypot(wide[:, 0], wide[:, 1])
    long = wide[lengths >= np.median(lengths)]
    tilt = np.median(np.arctan2(long[:, 1], long[:, 0]))
    sine, cosine = np.sin(-tilt), np.cos(-tilt)
    turned: NDArray[np.floating[Any]] = corners @ np.array([[cosine, sine], [-sine, cosine]])
    return turned


@cache
def _engine() -> Any:
    import rapidocr

    folder = Path(rapidocr.__file__).parent / "models"
    paths = {kind: folder / name for kind, name in _MODELS.items()}
    if not all(path.is_file() for path in paths.values()):
        raise InferenceError(
            f"This rapidocr has not the models of PP-OCRv6: {folder}",
            hint="Install a version from 3.10 on, below 4.",
        )
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.text_score": _LEAST_SCORE,
            # It turns whole lines upside down that are upright.
            "Global.use_cls": False,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            **{f"{kind}.model_path": str(path) for kind, path in paths.items()},
        }
    )
