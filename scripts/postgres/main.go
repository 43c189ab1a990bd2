// SPDX-License-Identifier: Apache-2.0

// Command postgres starts a PostgreSQL server for tests, runs a command with its address in
// ARTEL_TEST_DATABASE, and removes the server. If the variable is set, its server is used.
// The exit status is that of the command.
//
//	go run ./scripts/postgres go test ./app
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/artelhq/artel/store/postgres/postgrestest"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "postgres:", err)
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("say what to run: go run ./scripts/postgres COMMAND [ARGUMENT…]")
	}
	// The command gets the signals of the terminal too, and ends first.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	server, err := postgrestest.Start()
	if err != nil {
		return 1, err
	}
	defer server.Stop()
	c := exec.Command(command[0], command[1:]...) //nolint:gosec // what the user says
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), postgrestest.Variable+"="+server.Address)
	err = c.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(e.ExitCode(), 1), nil // it has said why
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
