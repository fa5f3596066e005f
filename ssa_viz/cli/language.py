"""`ssa-viz language`: make a corpus ready, train a language model on it or go on doing so, and measure models."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ssa_viz.checkpoints.language import load_language, load_language_state, save_language, save_language_state
from ssa_viz.cli.evaluate import first_difference
from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.language import Trigram, language_card
from ssa_viz.model.language import KINDS, POSITIONS, LanguageConfig
from ssa_viz.scoring import SCORING
from ssa_viz.text.corpus import documents
from ssa_viz.text.pairs import read_pairs
from ssa_viz.text.prepared import prepare, read_prepared
from ssa_viz.train.devices import devices
from ssa_viz.train.language.config import PRECISIONS, LanguageRun
from ssa_viz.train.language.training import LanguageProgress, LanguageTraining

OWN = ("model", "corpus", "initial", "learnable", "vocabulary")
CHOICES = {"kind": KINDS, "positions": POSITIONS, "precision": PRECISIONS, "scoring": tuple(SCORING)}
STATE_FILE, CURVE_FILE = "state.safetensors", "curve.json"
SNAPSHOT_SECONDS = 60.0


def add_language(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="action")
    ready = actions.add_parser("prepare", help="text to tokens")
    ready.set_defaults(run=_prepare)
    sources = "files, folders of .txt files, or datasets:NAME:CONFIG:COLUMN"
    ready.add_argument("texts", nargs="+", metavar="text", help=sources)
    ready.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    ready.add_argument("--validation", nargs="*", default=[], metavar="TEXT", help="default 2% of the documents")
    ready.add_argument("--apart-from", nargs="*", default=[], metavar="TEXT", help="texts to test on: never trained on")
    ready.add_argument("--vocabulary", type=int, default=4096)
    ready.add_argument("--seed", type=int, default=0)
    ready.add_argument("--most", type=int, help="documents of each text")
    learn = actions.add_parser("train", help="train a model on a prepared corpus, or go on")
    learn.set_defaults(run=_train)
    learn.add_argument("--corpus-folder", type=Path, required=True, metavar="FOLDER", help="what prepare wrote")
    learn.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    learn.add_argument("--device", choices=list(devices()), default="cpu")
    learn.add_argument("--every", type=int, default=200, help="steps between two lines of progress")
    learn.add_argument("--minutes", type=float, help="save the state and end after so many; the same command goes on")
    for config in (LanguageConfig(), LanguageRun()):
        for field in fields(config):
            if field.name not in OWN:
                value = getattr(config, field.name)
                learn.add_argument(
                    f"--{field.name.replace('_', '-')}",
                    type=type(value),
                    choices=CHOICES.get(field.name),
                    default=argparse.SUPPRESS,
                    help=f"default {value}",
                )
    measured = actions.add_parser("evaluate", help="measure models and print their cards")
    measured.set_defaults(run=_evaluate)
    measured.add_argument("folders", nargs="+", type=Path, metavar="folder")
    measured.add_argument("--texts", nargs="*", default=[], metavar="NAME=TEXT", help="to measure perplexity on")
    measured.add_argument("--pairs", nargs="*", default=[], metavar="NAME=FOLDER", help="in Zorro's or BLiMP's layout")
    floor = actions.add_parser("floor", help="the perplexity of a word-trigram model, to be beaten")
    floor.set_defaults(run=_floor)
    floor.add_argument("training", nargs="+", metavar="text", help="what the models were trained on")
    floor.add_argument("--texts", nargs="+", required=True, metavar="NAME=TEXT", help="to measure on")
    action = measured.add_mutually_exclusive_group()
    action.add_argument("--save", action="store_true", help="write the card into the model's folder")
    action.add_argument("--check", action="store_true", help="compare with the saved card; exit 1 if they differ")


def _prepare(arguments: argparse.Namespace) -> int:
    corpus = prepare(
        arguments.out,
        arguments.texts,
        vocabulary=arguments.vocabulary,
        validation=arguments.validation,
        apart_from=arguments.apart_from,
        seed=arguments.seed,
        most=arguments.most,
    )
    print(json.dumps({"id": corpus.id, **corpus.about}, indent=2))
    return 0


def language_run(options: dict[str, Any], corpus: str, vocabulary: int) -> LanguageRun:
    """The run that the options of `language train` ask for.

    Raises:
        InvalidInputError, UnknownNameError: they make none.
    """
    names = {config: [f.name for f in fields(config) if f.name not in OWN] for config in (LanguageConfig, LanguageRun)}
    model = {name: options[name] for name in names[LanguageConfig] if name in options}
    return LanguageRun(
        model=replace(LanguageConfig(), vocabulary=vocabulary, **model),
        corpus=corpus,
        **{name: options[name] for name in names[LanguageRun] if name in options},
    )


def _train(arguments: argparse.Namespace) -> int:
    if arguments.every < 1:
        raise InvalidInputError(f"progress can be told every 1 or more steps, not every {arguments.every}")
    corpus = read_prepared(arguments.corpus_folder)
    run = language_run(vars(arguments), corpus.id, corpus.tokenizer.vocabulary)
    training = LanguageTraining(run, corpus.training, corpus.validation, device=arguments.device)
    state, curve_path = arguments.out / STATE_FILE, arguments.out / CURVE_FILE
    curve: list[dict[str, float]] = []
    if state.exists():
        training.restore(*load_language_state(state, run))
        kept = json.loads(curve_path.read_text(encoding="utf-8")) if curve_path.exists() else []
        curve = [each for each in kept if each["step"] <= training.step]
        print(f"goes on from step {training.step}", flush=True)
    began = saved = time.monotonic()
    while not training.done:
        training.advance()
        if training.step % arguments.every == 0 or training.done:
            curve.append(_said(training.progress(), run))
        over = arguments.minutes is not None and time.monotonic() - began > 60 * arguments.minutes
        if training.done or over or time.monotonic() - saved > SNAPSHOT_SECONDS:
            save_language_state(state, run, training.step, training.tensors())
            curve_path.write_text(json.dumps(curve) + "\n", encoding="utf-8")
            saved = time.monotonic()
        if over and not training.done:
            print(f"paused at step {training.step} of {run.steps}; the same command goes on", flush=True)
            return 0
    model = training.model.cpu().eval()
    save_language(arguments.out, model, run, corpus.tokenizer, {"curve": curve, "corpus": corpus.about})
    return 0


def _said(progress: LanguageProgress, run: LanguageRun) -> dict[str, float]:
    print(
        f"step {progress.step} of {run.steps}: loss {progress.loss:.4f}, validation {progress.validation:.4f}, "
        f"gradient {progress.gradient_norm:.3f}",
        flush=True,
    )
    return {"step": progress.step, "loss": progress.loss, "validation": progress.validation}


def _evaluate(arguments: argparse.Namespace) -> int:
    texts = {name: list(documents(source)) for name, source in map(_named, arguments.texts)}
    suites = {name: read_pairs(Path(source)) for name, source in map(_named, arguments.pairs)}
    code = 0
    for folder in arguments.folders:
        found = load_language(folder)
        card = json.loads(json.dumps(language_card(found.model, found.tokenizer, texts, suites)))
        if arguments.save:
            kept = {**found.metrics, **card}
            save_language(folder, found.model, found.run, found.tokenizer, kept)
        elif arguments.check:
            differs = first_difference(card, {name: found.metrics.get(name) for name in card})
            print(f"{folder}: {f'DIFFERS from its card: {differs}' if differs else 'same as its card'}", flush=True)
            code = 1 if differs else code
        else:
            print(json.dumps({"name": found.name, **card}, indent=2), flush=True)
    return code


def _floor(arguments: argparse.Namespace) -> int:
    trigram = Trigram(document for source in arguments.training for document in documents(source))
    found = {name: trigram.per_word(documents(source)) for name, source in map(_named, arguments.texts)}
    print(json.dumps({"perplexity_per_word": found}, indent=2))
    return 0


def _named(text: str) -> tuple[str, str]:
    name, _, source = text.partition("=")
    if not name or not source:
        raise InvalidInputError(f"expected NAME=PATH, not {text!r}")
    return name, source
