"""Which tests `make test-fast` leaves out (files that take long as a whole), and profiles."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# A job in the background of a shell ignores Ctrl-C, and so do the processes that it starts. Tests
# press Ctrl-C; some would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# For `make sanitize`, where everything takes several times as long.
settings.register_profile(
    "sanitize", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

#: By measurement (``--durations=0``). What is left covers every part, in less than a minute.
LONG = {
    "cli/test_console.py",
    "cli/test_model_text.py",
    "cli/test_path.py",
    "estimators/test_callbacks.py",
    "estimators/test_linear.py",
    "estimators/test_tagger_files.py",
    "features/test_encode.py",
    "features/test_template_encoder.py",
    "io/test_container.py",
    "io/test_items.py",
    "io/test_tagger_file.py",
    "native/test_cky.py",
    "native/test_dependency.py",
    "native/test_engine.py",
    "native/test_example_weights.py",
    "native/test_fixed_term.py",
    "native/test_interrupt.py",
    "native/test_kernel_rows.py",
    "native/test_lazy_beta.py",
    "native/test_ownership.py",
    "native/test_pair_features.py",
    "native/test_plane_store.py",
    "native/test_primal.py",
    "native/test_slack_oracle.py",
    "native/test_state.py",
    "native/test_vector_code.py",
    "native/test_words.py",
    "solvers/test_bcfw.py",
    "solvers/test_checkpoint.py",
    "solvers/test_driver.py",
    "solvers/test_elastic_convergence.py",
    "solvers/test_elastic_net.py",
    "solvers/test_extragradient.py",
    "solvers/test_formulations.py",
    "solvers/test_handover.py",
    "solvers/test_hard_problems.py",
    "solvers/test_inexact_oracle.py",
    "solvers/test_interior_point.py",
    "solvers/test_lp.py",
    "solvers/test_nslack.py",
    "solvers/test_one_slack.py",
    "solvers/test_resume.py",
    "solvers/test_sap.py",
    "solvers/test_subgradient.py",
    "structures/test_alignment.py",
    "structures/test_check.py",
    "structures/test_kernels.py",
    "structures/test_vectors.py",
    "tests/test_benchmarks.py",
    "tests/test_compare.py",
    "tests/test_compare_plot.py",
    "tests/test_demo.py",
    "tests/test_docs.py",
    "tests/test_matrix.py",
    "tests/test_priors.py",
    "tests/test_regularizers.py",
    "tests/test_taxonomy_benchmark.py",
    "tests/test_trees.py",
    "tools/test_fuzz.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of long files as slow."""
    for item in items:
        if "/".join(item.path.parts[-2:]) in LONG:
            item.add_marker(pytest.mark.slow)
