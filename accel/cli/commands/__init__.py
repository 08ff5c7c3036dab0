"""Options and help of the commands. A command's execution is imported when it runs."""
