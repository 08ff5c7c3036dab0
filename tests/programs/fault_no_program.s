# A program without instructions.
.config tiny
.expect fault no-finish
