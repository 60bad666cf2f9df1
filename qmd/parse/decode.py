"""
Decodes the bytes of a file: by its byte order mark, as UTF-8, or in a detected legacy encoding.

A legacy encoding is detected from a bounded sample of the lines that are not ASCII, so a
20 MB file costs no more than a small one. The East Asian encodings are distinguished by how
many of the decoded characters are common ones, because statistical detectors are weak on
short notes; `charset_normalizer` decides about all other encodings.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from qmd import lazy, libraries
from qmd.engine_text import engine_text
from qmd.errors import DamagedFileError, DecodeError
from qmd.records import dataclass
from qmd.values.text import replace_halves

if TYPE_CHECKING:
    from typing_extensions import Buffer

_SAMPLE_BYTES = 32 * 1024

_BOMS = (  # UTF-32-LE begins like UTF-16-LE, so it is tried first
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_MAGIC = (
    (b"%PDF-", "a PDF file"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"PK\x03\x04", "a ZIP archive or an Office file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"SQLite format 3", "a SQLite database"),
    (b"\x7fELF", "a program"),
)

_LINE_END = re.compile(rb"[\r\n]")
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_TEXT_HIGH = lazy.pattern(r"[^\x00-\x7f]")
_KANA = lazy.pattern("[\u3041-\u3096\u30a1-\u30fa\u30fc]")
_HANGUL = lazy.pattern("[\uac00-\ud7a3]")
_HAN = lazy.pattern("[\u4e00-\u9fff]")
_PRIVATE = lazy.pattern("[\ue000-\uf8ff]")

_COMMON_SIMPLIFIED = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过"
    "发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心本"
    "前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问"
    "很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位"
    "次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神"
    "总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空"
    "决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死"
    "张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运笔测试码您请吗呢吧啊版输入文件章"
)
_COMMON_TRADITIONAL = frozenset(
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過"
    "發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心本"
    "前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問"
    "很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位"
    "次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神"
    "總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空"
    "決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死"
    "張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運筆測試碼您請嗎呢吧啊版輸檔章裏"
)
_WESTERN = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿœßÀÁÂÄÅÇÈÉÊËÎÑÓÔÖØÙÚÛÜŒ¡«»‘’“”–—…€°·\xa0")
_PUNCTUATION = frozenset("，。、；：？！“”‘’（）《》【】「」『』—…·～　")


#: GBK as Windows writes it: the byte 0x80 is the euro sign, which Python's codecs refuse.
CP936 = "windows-936"
_EURO = "qmd.euro"


def _euro(error: UnicodeError) -> tuple[str, int]:
    """The euro sign for a byte 0x80 that begins no character."""
    if isinstance(error, UnicodeDecodeError) and error.object[error.start] == 0x80:
        return "€", error.start + 1
    raise error


def _decode_cp936(data: Buffer, errors: str = "strict") -> tuple[str, int]:
    return codecs.lookup("gb18030").decode(data, _EURO if errors == "strict" else errors)


def _encode_cp936(text: str, errors: str = "strict") -> tuple[bytes, int]:
    return b"\x80".join(part.encode("gbk", errors) for part in text.split("€")), len(text)


def _codec(name: str) -> codecs.CodecInfo | None:
    is_ours = name == CP936.replace("-", "_")
    return codecs.CodecInfo(_encode_cp936, _decode_cp936, name=CP936) if is_ours else None


codecs.register_error(_EURO, _euro)
codecs.register(_codec)


@dataclass(frozen=True, slots=True)
class Decoded:
    """``encoding`` is a Python codec name; ``warnings`` are sentences for people."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes) -> Decoded:
    """
    The text of a file, without its byte order mark and with its line ends as they are.

    Never holds NUL or a lone surrogate.

    Raises:
        DecodeError: The bytes are no text.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _decode_marked(data[len(bom) :], encoding)
    if b"\0" in data or data.startswith(b"%PDF-"):
        raise _binary(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_legacy(data)
    if b"\x1b$" in data:
        japanese = _try(data, "iso2022_jp")
        if japanese is not None:
            return Decoded(japanese, "iso2022_jp")
    return Decoded(text, "utf-8")


def text_if_any(data: bytes) -> str | None:
    """The text of a file, as `decode` has it; None if the bytes are no text."""
    try:
        return decode(data).text
    except DecodeError:
        return None


def json_object(text: str, *, damaged: str, other: str, hint: str) -> Mapping[str, Any]:
    """
    The object of a text in JSON; an empty one of a blank text.

    Raises:
        DamagedFileError: It is no JSON (the sentence ``damaged``, with the field ``error``), or of
            another kind (``other``).
    """
    try:
        value = libraries.json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(engine_text(damaged, error=error), hint=hint) from error
    if not isinstance(value, dict):
        raise DamagedFileError(other, hint=hint)
    return value


def encoding_of(data: bytes) -> str:
    """
    The Python codec in which a text is written; what is appended to the text must use it too.

    Raises:
        DecodeError: The bytes are no text.
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return written_encoding(data, decode(data))
    return "utf-8"


_SMALLER = {"gb18030": ("gbk",), "big5hkscs": ("big5", "cp950")}


def written_encoding(data: bytes, decoded: Decoded) -> str:
    """
    The Python codec for new text in a file with these bytes.

    Files in GBK are read by GB 18030, those in Big5 by HKSCS, which have more characters. A file
    in which nothing goes beyond the smaller one stays in it, because other programs may read it so.
    """
    for encoding in _SMALLER.get(decoded.encoding, ()):
        try:
            if decoded.text.encode(encoding) == data:
                return encoding
        except UnicodeEncodeError:
            continue
    return decoded.encoding


def _decode_marked(data: bytes, encoding: str) -> Decoded:
    warnings: tuple[str, ...] = ()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        warnings = (_lossy(text, encoding.upper()),)
    if "\0" in text:
        raise _binary(data)
    return Decoded(text, encoding, warnings)


def _decode_legacy(data: bytes) -> Decoded:
    for magic, _ in _MAGIC:
        if data.startswith(magic):
            raise _binary(data)
    head = data[:_SAMPLE_BYTES]
    if len(_CONTROL.findall(head)) * 50 > len(head):
        raise _binary(data)

    damaged = data.decode("utf-8", "replace")
    bad = damaged.count("\ufffd")
    good = len(_TEXT_HIGH.findall(damaged[: 4 * _SAMPLE_BYTES])) - damaged.count(
        "\ufffd", 0, 4 * _SAMPLE_BYTES
    )
    if good > 3 * bad:
        # A UTF-8 file with a few broken bytes must not turn into another alphabet.
        return Decoded(damaged, "utf-8", (_lossy(damaged, "UTF-8"),))

    encoding = _detect(_sample(data))
    if encoding is not None:
        for name in (encoding, CP936) if encoding == "gb18030" else (encoding,):
            text = _try(data, name)
            if text is not None:
                return Decoded(text, name)
        text = data.decode(encoding, "replace")
        if text.count("\ufffd") < bad and "\0" not in text:
            return Decoded(replace_halves(text), encoding, (_lossy(text, encoding),))
    return Decoded(
        damaged, "utf-8", (_lossy(damaged, "UTF-8") + " Save the file as UTF-8 to index it whole.",)
    )


def _sample(data: bytes) -> bytes:
    """Whole lines with bytes beyond ASCII, so that no character is cut in two."""
    lines: list[bytes] = []
    size = at = 0
    # From one byte beyond ASCII to the next, looking back no further than the line before: a
    # pattern for such lines would read a long line of ASCII again from each of its bytes.
    while match := _HIGH_RUN.search(data, at):
        high = match.start()
        begin = max(data.rfind(b"\n", at, high), data.rfind(b"\r", at, high), at - 1) + 1
        after = _LINE_END.search(data, match.end())
        end = after.start() if after else len(data)
        if size + end - begin > _SAMPLE_BYTES:
            if not lines:  # one endless line: from where it says something
                lines.append(data[high : min(end, high + _SAMPLE_BYTES)])
            break
        lines.append(data[begin:end])
        size += end - begin
        at = end
    return b"\n".join(lines)


def _detect(sample: bytes) -> str | None:
    runs = _HIGH_RUN.findall(sample)
    high_bytes = sum(map(len, runs))
    single_bytes = sum(1 for run in runs if len(run) == 1)
    if single_bytes * 10 < high_bytes * 9:
        encoding = _detect_east_asian(sample)
        if encoding is not None:
            return encoding
    # Statistics are weak on short Western notes, too: letters that these languages use are taken
    # at face value. In the alphabets of Central Europe some would be signs such as "³" and "¹".
    western = _try(sample, "cp1252")
    if western is not None and single_bytes * 2 > high_bytes and _is_western(western):
        return "cp1252"
    encoding = _ask_charset_normalizer(sample)
    if encoding is not None:
        return encoding
    return "cp1252" if western is not None else "latin-1"


def _detect_east_asian(sample: bytes) -> str | None:
    """The most plausible East Asian encoding, None if none is plausible."""
    best_plausibility, best = 0.0, None
    for encoding in ("gb18030", "big5hkscs", "cp932", "euc_jp", "euc_kr"):
        plausibility = _plausibility(sample, encoding)
        if plausibility > best_plausibility:  # of equal ones, the first
            best_plausibility, best = plausibility, encoding
    return best if best_plausibility >= 0.3 else None


def _is_western(text: str) -> bool:
    """Whether at least 95 % of the characters beyond ASCII are usual in Western Europe."""
    usual = sum(1 for character in text if character in _WESTERN)
    return usual * 20 >= len(_TEXT_HIGH.findall(text)) * 19


def _plausibility(sample: bytes, encoding: str) -> float:
    """0..1: how common the characters are that the sample has in this encoding."""
    errors = _EURO if encoding == "gb18030" else "strict"
    try:
        text = codecs.getincrementaldecoder(encoding)(errors).decode(sample)
    except UnicodeDecodeError:
        return 0.0
    characters = _TEXT_HIGH.findall(text)
    if not characters:
        return 0.0
    private_use = len(_PRIVATE.findall(text))
    punctuation = sum(1 for character in characters if character in _PUNCTUATION)
    letters = max(len(characters) - punctuation, 1)
    share = _common_letters(text, characters, letters, encoding) / letters
    return max(0.0, share * (1 - 4 * private_use / len(characters)))


def _common_letters(text: str, characters: list[str], letters: int, encoding: str) -> float:
    """How many of the letters are common ones; 0 if they are not those of the encoding."""
    kana = len(_KANA.findall(text))
    if encoding == "euc_kr":
        hangul = len(_HANGUL.findall(text))
        return hangul if hangul * 10 > letters * 9 else 0.0
    if encoding in ("cp932", "euc_jp"):
        # Text in other encodings looks like half-width katakana when read as Shift-JIS.
        half_width = sum(1 for character in characters if "\uff61" <= character <= "\uff9f")
        is_japanese = kana * 5 > letters and half_width * 5 < letters
        return kana + len(_HAN.findall(text)) if is_japanese else 0.0
    return 0.0 if kana * 5 > letters else _common_han(text, encoding)


def _common_han(text: str, encoding: str) -> float:
    """The number of common Chinese characters, each less common one counted as a half."""
    han = _HAN.findall(text)
    most_common = _COMMON_SIMPLIFIED if encoding == "gb18030" else _COMMON_TRADITIONAL
    common = sum(1 for character in han if character in most_common)
    # A short note need not hold any of the most common characters: the first level of the
    # national standards (the few thousand in daily use) counts for half.
    first_level = sum(1 for character in han if _is_first_level(character, encoding))
    return common + 0.5 * max(first_level - common, 0)


@lru_cache(maxsize=16384)
def _is_first_level(character: str, encoding: str) -> bool:
    """Whether a character is in the first level of GB 2312 or of Big5."""
    code = character.encode(encoding, "replace")
    if len(code) != 2:
        return False
    if encoding == "gb18030":
        return 0xB0 <= code[0] <= 0xD7 and code[1] >= 0xA1
    return 0xA4 <= code[0] <= 0xC6


def _ask_charset_normalizer(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes

    match = from_bytes(sample[: _SAMPLE_BYTES // 2]).best()
    if match is None or match.encoding.startswith(("utf", "ascii")):
        return None
    return str(match.encoding)


def _try(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    # Some codecs (UTF-7, gb18030 on some builds) let lone surrogates through.
    return None if "\0" in text else replace_halves(text)


def _lossy(text: str, encoding: str) -> str:
    count = text.count("\ufffd")
    places = "1 place is" if count == 1 else f"{count} places are"
    return f"{places} not valid {encoding} and read as U+FFFD."


def _binary(data: bytes) -> DecodeError:
    for magic, name in _MAGIC:
        if data.startswith(magic):
            return DecodeError(
                f"The file is {name}, not text.", hint="Exclude it in .qmdignore or by the mask."
            )
    return DecodeError(
        "The file holds bytes that no text has (binary data, or UTF-16 without a byte order mark).",
        hint="Save it as UTF-8, or exclude it in .qmdignore.",
    )
