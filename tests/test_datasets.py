import numpy as np

from hedgerow import LinearCRF
from hedgerow.datasets import OCR, load_ocr


def test_ocr_is_what_its_authors_describe():
    data = load_ocr()
    assert isinstance(data, OCR)
    X, y, fold = data
    assert len(X) == len(y) == len(fold) == 6877
    assert [x.shape for x in X] == [(len(letters), 128) for letters in y]
    pixels, letters = np.concatenate(X), np.concatenate(y)
    assert pixels.dtype == np.uint8
    assert letters.shape == (52152,)
    assert np.unique(pixels).tolist() == [0, 1]
    assert "".join(np.unique(letters)) == "abcdefghijklmnopqrstuvwxyz"
    assert np.unique(fold).tolist() == list(range(10))
    assert np.bincount(fold).min() > 600
    assert "".join(y[0]) == "ommanding"
    assert "".join(y[-1]) == "nconsequential"


def test_the_pixels_show_the_letter():
    # The first "o" is a ring: ink around a middle without any.
    picture = load_ocr().X[0][0].reshape(16, 8)
    rows, columns = np.flatnonzero(picture.any(axis=1)), np.flatnonzero(picture.any(axis=0))
    inside = picture[rows[0] + 1 : rows[-1], columns[0] + 1 : columns[-1]]
    assert picture.sum() > 15
    assert not inside[len(inside) // 2].all()


def test_each_call_has_its_own_arrays():
    first, second = load_ocr(), load_ocr()
    first.X[0][:] = 7
    assert second.X[0].max() == 1


def test_letters_can_be_learnt():
    X, y, fold = load_ocr()
    train, test = np.flatnonzero(fold == 0)[:150], np.flatnonzero(fold == 1)[:100]
    crf = LinearCRF(tol=1e-3).fit([X[s] for s in train], [y[s] for s in train])
    assert crf.score([X[s] for s in test], [y[s] for s in test]) > 0.6
