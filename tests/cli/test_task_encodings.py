"""``--encoding`` of tasks: text that is not UTF-8 gives the same models and predictions."""

from __future__ import annotations

import pytest

from cli_files import refused, run, summary, write

NEWS = "naïve\tla fête à Rome\npolitique\tle vœu de l'été\n".replace("œ", "oe") * 6
PATHS = "réc/sport\tla fête\nréc/opéra\tun été\n" * 6
BRACKETS = "(S (NP (DT le) (NN café)) (VP (VBZ brûle)))\n(S (NP (NN été)) (VP (VBZ brûle)))\n" * 3
TREES = (
    "1\tLe\t_\tDET\t_\t_\t2\tdét\t_\t_\n2\tcafé\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
    "3\tbrûle\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
) * 4
#: Task -> a file of it.
FILES = {
    "classes": NEWS,
    "taxonomy": PATHS,
    "trees": BRACKETS,
    "dependencies": TREES,
}


@pytest.mark.parametrize("task", FILES)
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_the_same_model_and_predictions(capsys, tmp_path, task, encoding):
    figures, outputs = {}, {}
    for name, given in (("utf-8", []), (encoding, ["--encoding", encoding])):
        data = write(tmp_path / f"{name}.txt", FILES[task].encode(name))
        model = tmp_path / f"{name}.mm"
        train = ["train", data, "--task", task, "-m", model, "--valid", data, "-q", *given]
        if task == "taxonomy":
            tree = "".join(f"{line.split(chr(9))[0]}\n" for line in PATHS.splitlines())
            train += ["--taxonomy", write(tmp_path / "t.txt", tree.encode(name))]
        trained = summary(capsys, *train)
        scores = summary(capsys, "eval", "-m", model, data)  # the model remembers it
        out = tmp_path / f"{name}.out"
        source = data
        if task == "trees":
            sentences = "le_DT café_NN brûle_VBZ\n"
            source = write(tmp_path / f"{name}.new", sentences.encode(name))
        run(capsys, "predict", "-m", model, source, "-o", out)
        outputs[name] = out.read_bytes().decode(name)
        figures[name] = {
            k: v
            for k, v in {**trained, **scores}.items()
            if not k.startswith(("seconds", "model", "peak")) and not k.endswith("per_second")
        }
    assert figures["utf-8"] == figures[encoding]
    assert outputs["utf-8"] == outputs[encoding]
    assert any(letter in outputs["utf-8"] for letter in "éïû")


def test_a_file_may_be_in_another_encoding_than_that_of_training(capsys, tmp_path):
    data = write(tmp_path / "l.txt", NEWS.encode("latin-1"))
    model = tmp_path / "m.mm"
    run(capsys, "train", data, "--task", "classes", "-m", model, "-q", "--encoding", "latin-1")
    plain = write(tmp_path / "u.txt", NEWS)
    scores = summary(capsys, "eval", "-m", model, plain, "--encoding", "utf-8")
    assert scores["accuracy"] == summary(capsys, "eval", "-m", model, data)["accuracy"] == 1
    out = run(capsys, "predict", "-m", model, plain, "--encoding", "utf-8")
    assert "naïve" in out


def test_what_cannot_be_written_or_read_is_named(capsys, tmp_path):
    greek = write(tmp_path / "g.txt", NEWS.replace("naïve", "αβγ"))
    model = tmp_path / "m.mm"
    run(capsys, "train", greek, "--task", "classes", "-m", model, "-q")
    data = write(tmp_path / "l.txt", NEWS.encode("latin-1"))
    out = tmp_path / "out.txt"
    given = ["predict", "-m", model, data, "-o", out]
    message = refused(capsys, *given, "--encoding", "latin-1")
    assert "'αβγ', which cannot be written in iso8859-1" in message
    assert not out.exists()
    train = ["train", data, "--task", "classes", "-m", tmp_path / "n.mm"]
    assert "not UTF-8" in refused(capsys, *train)
    bad = write(tmp_path / "bad.txt", "réc/sport\tx\nréc//sport\ty\n".encode("latin-1"))
    train = ["train", bad, "--task", "taxonomy", "-m", tmp_path / "n.mm", "--encoding", "latin-1"]
    assert "bad.txt: line 2" in refused(capsys, *train)


def test_other_options_of_taggers_stay_refused(capsys, tmp_path):
    data = write(tmp_path / "d.txt", NEWS)
    model = tmp_path / "m.mm"
    run(capsys, "train", data, "--task", "classes", "-m", model, "-q")
    assert "--comments is for models of label sequences" in refused(
        capsys, "predict", "-m", model, data, "--comments", "#"
    )
