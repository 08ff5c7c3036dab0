"""A page to change one thing and look: workload, machine and schedule, and what they make of a run.

``accel studio`` serves it (:mod:`accel.studio.server`); what it shows is :func:`accel.studio.view.view_of`.
"""
