// Thrust in device code: pairs and tuples, which are those of the standard library.
#pragma once
#include <tuple>
namespace thrust {

using std::get;
using std::ignore;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_cat;
using std::tuple_size;

}  // namespace thrust
