// The header is all there is: this file makes it a library that others may use, and compiles it by itself.
#include "executor/serving/served_models.h"
