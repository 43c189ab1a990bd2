// SPDX-License-Identifier: Apache-2.0

package main

func Example() {
	main()
	// Output:
	// version 2, matched exact at 14
	// refused: ambiguous, 2 places
	// version 1:
	// - [ ] bread
	// - [ ] milk
	// version 2:
	// - [ ] bread
	// - [x] milk
}
