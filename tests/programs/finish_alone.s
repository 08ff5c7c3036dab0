# The shortest program.
.config tiny
        FINISH
.expect done
.expect tokens
