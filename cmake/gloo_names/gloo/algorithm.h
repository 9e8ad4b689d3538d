#pragma once
// c10d's Gloo header includes this file, which the wheel does not carry; nothing of it is used.
