"""A page on which one changes workload, machine or schedule and sees the resulting run.

``accel studio`` serves it (:mod:`accel.studio.studio_server`). :func:`accel.studio.studio_view.state_view`
computes its content.
"""
