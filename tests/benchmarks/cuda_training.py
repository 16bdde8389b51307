"""What only a GPU can show: equality, speed, the reference protocol on Adult, and which bandwidth policy is evaded.

``python tests/benchmarks/cuda_training.py --data FOLDER --sweep sweep.csv [--out FOLDER] [--device cuda]``
needs torch, numpy and pandas. Every part is written to JSON as soon as it is done; a short table comes last.
``--parts policies --csv book/results/bandwidth_policies.csv`` writes the runs of the chapter on the bandwidth trap;
lines of the forms and policies trained are replaced, the others stay.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from frhsic_core.conditional import gdp
from frhsic_core.data import load_dataset, stack_splits
from frhsic_core.learning import FRHSIC, METHODS, EscapeWarning, Trainer, make_penalty
from frhsic_core.learning.audit import audit_representation
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.penalties.whitening import RIDGE

VARIANTS = [(m, p) for m in METHODS for p in ("recommended", "text", "reference")] + [("frhsic", "on both")]
POLICIES = ("fixed", "every_20_epochs", "reference", "every_batch", "moving_average")
FORMS: dict[str, Callable[[str], FRHSIC]] = {
    "biased": lambda policy: FRHSIC(estimator="biased", scale=None, bandwidth=policy),
    "unbiased": lambda policy: FRHSIC(estimator="unbiased", scale=None, bandwidth=policy),
    "normalized": lambda policy: FRHSIC(estimator="normalized", scale=None, bandwidth=policy),
    "normalized, Z standardised": lambda policy: FRHSIC(bandwidth=policy, scale="standardise"),
    "normalized, Z whitened": lambda policy: FRHSIC(bandwidth=policy),  # FRHSIC(), with every_batch
    "the estimators' default": lambda policy: FRHSIC(bandwidth=policy, on="both"),  # and Z of four columns
}


def synthetic(n: int, d: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return x, y, s with S in the first column of X."""
    generator = torch.Generator().manual_seed(8)
    s = torch.rand(n, generator=generator)
    x = torch.rand(n, d, generator=generator)
    x[:, 0] = s + 0.1 * torch.randn(n, generator=generator)
    y = (torch.rand(n, generator=generator) < torch.sigmoid(4 * (x[:, 0] + x[:, 1] - 1))).float()
    return x.to(device), y.to(device), s.to(device)


def variant(method: str, protocol: str) -> Penalty:
    """Return the penalty of a variant's name."""
    return FRHSIC(on="both") if protocol == "on both" else make_penalty(method, protocol=protocol)


def equality(args: argparse.Namespace) -> dict[str, Any]:
    """Largest difference of parameters after 20 steps: stack against lone runs, captured against eager."""
    x, y, s = synthetic(1000, 20, args.device)
    lams = [[0.0, 0.5, 1.0, 5.0, 20.0][i % 5] for i in range(25)]
    seeds = [i // 5 for i in range(25)]
    rows = {}
    for method, protocol in VARIANTS:

        def train(capture: bool, method: str = method, protocol: str = protocol, **stack: Any) -> Trainer:
            trainer = Trainer(
                x, y, s, penalty=variant(method, protocol), epochs=5, device=args.device,
                capture=capture and args.device == "cuda", **stack,
            )  # fmt: skip
            trainer.fit()
            return trainer

        together, eager = (train(capture, lam=lams, seeds=seeds) for capture in (True, False))
        captured = args.device == "cuda" and not together._run.failed  # type: ignore[attr-defined]
        apart = 0.0
        for i in range(0, 25, 1 if protocol == "reference" else 6):
            lone = train(False, lam=lams[i], seeds=seeds[i])
            apart = max(apart, _distance(together, lone, i))
        pairs = zip(together.model.parameters(), eager.model.parameters(), strict=True)
        replay = max((a - b).abs().max().item() for a, b in pairs)
        rows[f"{method} {protocol}"] = {"separate": apart, "eager": replay, "captured": captured}
    return rows


def _distance(stack: Trainer, lone: Trainer, i: int) -> float:
    pairs = zip(stack.model.parameters(), lone.model.parameters(), strict=True)
    return max((a[i] - b[0]).abs().max().item() for a, b in pairs)


def speed(args: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a step of 25 and 125 stacked models at Adult's size, batch 256, captured and eager."""
    x, y, s = synthetic(26_048, 107, args.device)
    cases: dict[str, Penalty] = {
        "unfair": make_penalty("unfair"),
        "frhsic fixed bandwidth": FRHSIC(estimator="biased", scale=None, bandwidth=1.0),
        "frhsic every batch": FRHSIC(estimator="biased", scale=None, bandwidth="every_batch"),
        "frhsic standardised": FRHSIC(scale="standardise"),
        "frhsic recommended": FRHSIC(),
        "frhsic recommended, on both": FRHSIC(on="both"),
        "frem": make_penalty("frem"),
        "reg_gdp": make_penalty("reg_gdp"),
        "adv": make_penalty("adv"),
        "laftr": make_penalty("laftr"),
        "mmd_binned": make_penalty("mmd_binned"),
        "dcor": make_penalty("dcor"),
    }
    rows: dict[str, Any] = {}
    for name, penalty in cases.items():
        for models in (25, 125) if args.device == "cuda" else (2,):
            for capture in (True, False) if args.device == "cuda" else (False,):
                trainer = Trainer(
                    x, y, s, penalty=penalty, lam=1.0, seeds=list(range(models)), epochs=10**6, device=args.device,
                    capture=capture,
                )  # fmt: skip
                trainer._train_epoch([]) if args.device == "cuda" else None
                steps = (100 if capture else 20) if args.device == "cuda" else 2
                trainer._start.zero_()
                refresh = trainer.penalty.policy is not None and trainer.penalty.policy.refreshes(1, 1)
                for _ in range(2):
                    trainer._run(256, refresh)
                trainer._start.zero_()
                _wait(args)
                begin = time.perf_counter()
                for _ in range(steps):
                    trainer._run(256, refresh)
                _wait(args)
                key = f"{name}, {models} models, {'captured' if capture else 'eager'}"
                rows[key] = 1e3 * (time.perf_counter() - begin) / steps
                if capture and trainer._run.failed:  # type: ignore[attr-defined]
                    rows[key + " (CAPTURE FAILED)"] = rows.pop(key)
                del trainer
    return rows


def _wait(args: argparse.Namespace) -> None:
    if args.device == "cuda":
        torch.cuda.synchronize()


def reference_protocol(args: argparse.Namespace) -> dict[str, Any]:
    """Adult, splits 42 to 46, the authors' settings: accuracy and GDP (their convention) against their stored runs."""
    import pandas as pd

    stored = pd.read_csv(args.sweep)
    splits = stack_splits(load_dataset("adult", "reference", data_dir=args.data), device=args.device)
    rows: dict[str, Any] = {}
    for method, lams in {"unfair": [0.0], "frhsic": [10.0, 50.0], "frem": [100.0], "reg_gdp": [1.0]}.items():
        begin = time.perf_counter()
        trained = Trainer(
            splits.x_train, splits.y_train, splits.s_train, penalty=method, protocol="reference",
            lam=[lam for lam in lams for _ in splits.seeds], seeds=list(splits.seeds) * len(lams),
            dataset=list(range(len(splits))) * len(lams), epochs=args.epochs, device=args.device,
        ).fit()  # fmt: skip
        _wait(args)
        seconds = time.perf_counter() - begin
        which = list(trained.dataset)
        logits = trained.output(splits.x_test)
        accuracy = ((logits > 0) == (splits.y_test[which] > 0.5)).double().mean(-1).cpu()
        parity = gdp(logits.double(), splits.s_test[which].double(), reference=True).cpu()
        for k, lam in enumerate(lams):
            part = slice(k * len(splits), (k + 1) * len(splits))
            line = stored[(stored.dataset == "adult") & (stored.method == method) & (stored["lambda"] == lam)].iloc[0]
            row = {"seconds": seconds, "models": trained.models}
            for name, mine, mean, sd in (
                ("acc", accuracy[part], line.perf_mean, line.perf_std),
                ("gdp", parity[part], line.gdp_mean, line.gdp_std),
            ):
                value = mine.mean().item()
                row |= {
                    name: value, f"{name}_sd": mine.std(unbiased=False).item(), f"{name}_stored": float(mean),
                    f"{name}_stored_sd": float(sd), f"{name}_within_2sd": bool(abs(value - mean) <= 2 * sd + 5e-5),
                }  # fmt: skip
            rows[f"{method} λ={lam:g}"] = row
    return rows


def policies(args: argparse.Namespace) -> dict[str, Any]:
    """Adult at λ = 500, ten splits with ten seeds: how often each policy is evaded, or the model collapses.

    Evaded: median(|z − z'|)/σ_Z above 3 in the last epoch while Z still depends on S (normalised HSIC above 1.5 times
    its floor, or a nonlinear probe's R² above .05). Collapsed: test accuracy within .005 of the majority class.
    """
    seeds = list(range(42, 42 + args.seeds))
    splits = stack_splits(load_dataset("adult", "reference", data_dir=args.data), seeds=seeds, device=args.device)
    forms = {name: make for name, make in FORMS.items() if not args.forms or name in args.forms}
    majority = torch.maximum(splits.y_test.mean(-1), 1 - splits.y_test.mean(-1)).double().cpu()
    rows: dict[str, Any] = {}
    for form, make in forms.items():
        for policy in args.policies or POLICIES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EscapeWarning)
                trained = Trainer(
                    splits.x_train, splits.y_train, splits.s_train, penalty=make(policy), protocol="reference",
                    lam=500.0, seeds=seeds, epochs=args.epochs, device=args.device,
                    widths=(50, 4) if form.startswith("the estimators") else (50, 50),
                ).fit()  # fmt: skip
            z, logits = trained.forward(splits.x_test)
            audit = audit_representation(z, splits.s_test, predictions=torch.sigmoid(logits), max_rows=1500)
            accuracy = ((logits > 0) == (splits.y_test > 0.5)).double().mean(-1).cpu()
            ratio = trained.history["ratio"][-1]
            peak = trained.history["ratio"].amax(0)
            statistic, floor = audit.normalized_hsic[:, 1], audit.floor[:, 1]
            dependent = (statistic > 1.5 * floor) | (audit.nonlinear_r2 > 0.05)
            collapsed = accuracy < majority + 0.005
            rows[f"{form}, {policy}"] = {
                "evaded": int(((ratio > 3) & dependent).sum()),
                "evaded_at_some_epoch": int(((peak > 3) & dependent).sum()),
                "collapsed": int(collapsed.sum()),
                "runs": len(seeds),
                "ratio": ratio.tolist(),
                "peak_ratio": peak.tolist(),
                "accuracy": accuracy.tolist(),
                "normalized_hsic": statistic.tolist(),
                "floor": floor.tolist(),
                "probe_r2": audit.nonlinear_r2.tolist(),
                "gdp_reference": gdp(logits.double(), splits.s_test.double(), reference=True).cpu().tolist(),
            }
    return rows


def write_policies(rows: dict[str, Any], path: Path, *, seeds: int) -> None:
    """Put the runs of :func:`policies` into the table of all runs, one line for each, in the place of older ones."""
    import pandas as pd

    columns = ["ratio", "peak_ratio", "accuracy", "normalized_hsic", "floor", "probe_r2", "gdp_reference"]
    new = []
    for name, values in rows.items():
        form, policy = name.rsplit(", ", 1)
        table = pd.DataFrame({column: values[column] for column in columns}).round(5)
        table.insert(0, "split", range(42, 42 + seeds))
        table.insert(0, "policy", policy)
        table.insert(0, "form", form)
        table["ridge"] = RIDGE if FORMS[form](policy).scale == "whiten" else float("nan")
        new.append(table)
    fresh = pd.concat(new, ignore_index=True)
    if path.exists():
        old = pd.read_csv(path)
        done = set(zip(fresh["form"], fresh["policy"], strict=True))
        kept = [pair not in done for pair in zip(old["form"], old["policy"], strict=True)]
        fresh = pd.concat([old[kept], fresh], ignore_index=True)
    forms = {form: i for i, form in enumerate(FORMS)}
    order = fresh["form"].map(forms) * len(POLICIES) + fresh["policy"].map(POLICIES.index)
    fresh.iloc[order.argsort(kind="stable")].to_csv(path, index=False)


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "equality": equality,
    "speed": speed,
    "reference_protocol": reference_protocol,
    "policies": policies,
}


def table(results: dict[str, Any]) -> str:
    """Return the short table."""
    lines = []
    if "equality" in results:
        worst = {k: max(r[k] for r in results["equality"].values()) for k in ("separate", "eager")}
        missed = [name for name, r in results["equality"].items() if not r["captured"]]
        lines.append(f"stack - separate, 20 steps: {worst['separate']:.1e}   captured - eager: {worst['eager']:.1e}")
        lines.append(f"not captured: {', '.join(missed) or 'none'}")
        far = [f"{n} {r['separate']:.1e}" for n, r in results["equality"].items() if r["separate"] > 1e-4]
        lines.append(f"above 1e-4: {', '.join(far) or 'none'}")
    lines += [f"{name:58s} {value:8.3f} ms" for name, value in results.get("speed", {}).items()]
    for name, r in results.get("reference_protocol", {}).items():
        lines.append(
            f"{name:14s} acc {r['acc']:.4f} ({r['acc_stored']:.4f} ± {r['acc_stored_sd']:.4f}) "
            f"{'ok ' if r['acc_within_2sd'] else 'OUT'}  gdp {r['gdp']:.4f} ({r['gdp_stored']:.4f} ± "
            f"{r['gdp_stored_sd']:.4f}) {'ok ' if r['gdp_within_2sd'] else 'OUT'}  {r['seconds']:.1f} s"
        )
    for name, r in results.get("policies", {}).items():
        mean = {k: sum(r[k]) / len(r[k]) for k in ("ratio", "accuracy", "probe_r2", "normalized_hsic")}
        lines.append(
            f"{name:46s} evaded {r['evaded']:2d}/{r['runs']}  collapsed {r['collapsed']:2d}/{r['runs']}  "
            f"ratio {mean['ratio']:6.2f}  acc {mean['accuracy']:.3f}  probe R² {mean['probe_r2']:.3f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", help="folder with adult/adult.data")
    parser.add_argument("--sweep", help="the authors' stored sweep, sweep.csv")
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--forms", nargs="+", choices=list(FORMS), help="only these forms, in the part `policies`")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, help="only these bandwidth policies")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--csv", help="table that takes the runs of the part `policies`")
    args = parser.parse_args()
    warnings.simplefilter("ignore", EscapeWarning)
    if args.device == "cpu":
        torch.set_num_threads(1)
    results: dict[str, Any] = {"torch": torch.__version__, "seconds": {}, "errors": {}}
    if args.device == "cuda":
        results["device"] = torch.cuda.get_device_name()
    path = Path(args.out) / "cuda_training.json"
    for name in args.parts:
        begin = time.perf_counter()
        try:
            results[name] = PARTS[name](args)
        except Exception as error:
            results["errors"][name] = repr(error)
            traceback.print_exc()
        results["seconds"][name] = time.perf_counter() - begin
        path.write_text(json.dumps(results, indent=1))
        if name == "policies" and name in results and args.csv:
            write_policies(results[name], Path(args.csv), seeds=args.seeds)
    print(table(results))
    print({k: f"{v:.0f} s" for k, v in results["seconds"].items()}, "errors:", results["errors"] or "none")


if __name__ == "__main__":
    main()
