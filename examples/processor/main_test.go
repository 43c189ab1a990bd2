// SPDX-License-Identifier: Apache-2.0

package main

func Example() {
	main()
	// Output:
	// system: Answer in imperial units. / You are a pilot.
	// user: How deep is it?
	// session-loader added [1]
	// injection-assembler added [artel:role-prompt]
	// units added [units]
}
