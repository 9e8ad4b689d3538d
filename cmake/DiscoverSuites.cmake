# Writes a file for CTest that has a test for each suite of a GoogleTest program with tests under a filter. A program
# that takes long to load runs a suite in a process, where gtest_discover_tests() would start one for each test.
#
# In: PROGRAM, FILTER (what --gtest_filter takes, "-" before what is left out), PROPERTIES (of each test), FILE.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_filter=${FILTER} OUTPUT_VARIABLE listed
                RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${failed}")
endif()
string(REGEX MATCH "-.*" left_out "${FILTER}")
string(REGEX MATCHALL "[^\n]+" lines "${listed}")
set(script "")
foreach(line ${lines})
  if(line MATCHES "^([^ ]+)\\.( |$)")
    set(suite ${CMAKE_MATCH_1})
    string(APPEND script "add_test([==[${suite}]==] \"${PROGRAM}\" [==[--gtest_filter=${suite}.*${left_out}]==])\n"
                         "set_tests_properties([==[${suite}]==] PROPERTIES ${PROPERTIES})\n")
  endif()
endforeach()
file(WRITE ${FILE} "${script}")
