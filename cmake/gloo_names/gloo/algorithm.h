#pragma once
// c10d's Gloo header includes this file, which the wheel lacks, and uses nothing of it.
