# Writes a file for CTest that has a test for each suite of a GoogleTest program in which tests match a filter. So a
# program that takes long to load starts once for a suite; gtest_discover_tests() would start it once for each test.
#
# In: PROGRAM, FILTER (the value of --gtest_filter), PROPERTIES (of each CTest test), FILE (to write).
execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_filter=${FILTER} OUTPUT_VARIABLE listed
                RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: must succeed, ended with: ${failed}. Run it to see why.")
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
