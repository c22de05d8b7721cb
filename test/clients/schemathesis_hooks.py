"""Loaded by schemathesis (SCHEMATHESIS_HOOKS).

Hypothesis improves on what a service accepts by changing one drawn value at a time, and reads the place of that value
in the newest accepted case. Where that case is shorter, it ends the run with an IndexError of its own. The climb ends
there instead; a failure that the service causes is not raised here, but kept by the engine.
"""

from hypothesis.internal.conjecture.optimiser import Optimiser

_climb = Optimiser.hill_climb


def _climb_or_stop(self: Optimiser) -> None:
    try:
        _climb(self)
    except IndexError as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        if last is None or not last.tb_frame.f_code.co_filename.endswith("conjecture/optimiser.py"):
            raise


Optimiser.hill_climb = _climb_or_stop
