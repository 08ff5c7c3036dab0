// The library's header of this name without one of the checks that are for its own developers: on a full disk
// it would end the process.
#pragma once

#include_next "fstcpp/fstcpp_assertion.h"

#undef FST_DCHECK_EQ
#define FST_DCHECK_EQ(a, b)
