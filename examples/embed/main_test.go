// SPDX-License-Identifier: Apache-2.0

package main

func Example() {
	main()
	// Output:
	// calls create_artifact
	// calls read_artifact
	// calls update_artifact
	// task_plan is at version 2
	// calls create_artifact
	// calls update_artifact
	// task_plan is at version 3
	// the run is done
	//
	// # Report
	//
	// **Demo model** – this answer is scripted; no language model was asked.
	//
	// ## Message 1
	//
	// > Read this and report.
	//
	// It has 21 characters.
	//
	// ### What I found
	//
	// - `notes.md`: text, first heading “Notes”, lines: 3
}
