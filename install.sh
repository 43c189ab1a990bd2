#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs artel for this account, without root:
#
#   curl -fsSL https://github.com/artelhq/artel/releases/latest/download/install.sh | sh
#
# ARTEL_VERSION  a version such as 0.1.0 (default: the newest)
# ARTEL_BIN      the folder of the program (default: ~/.local/bin)
# ARTEL_RELEASES where releases are (default: https://github.com/artelhq/artel/releases)
set -eu

fail() {
	echo "install.sh: $1" >&2
	exit 1
}

# fetch URL FILE
fetch() {
	if command -v curl >/dev/null 2>&1; then
		curl -fsSL --retry 2 -o "$2" "$1"
	elif command -v wget >/dev/null 2>&1; then
		wget -q -O "$2" "$1"
	else
		fail "neither curl nor wget is there: install one of them and run this again"
	fi || fail "$1 cannot be fetched: look at the network, and whether that version exists"
}

digest() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1"
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 "$1"
	else
		fail "neither sha256sum nor shasum is there, so the archive cannot be checked: install one of them"
	fi | cut -d ' ' -f 1
}

# Everything is in a function, so that a script that was cut on its way does nothing.
main() {
	releases=${ARTEL_RELEASES:-https://github.com/artelhq/artel/releases}
	bin=${ARTEL_BIN:-${HOME:?HOME is not set: set ARTEL_BIN}/.local/bin}

	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "there is no archive for $(uname -s) here; on Windows use scoop, elsewhere: go install github.com/artelhq/artel/cmd/artel@latest" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no archive for $(uname -m); with Go: go install github.com/artelhq/artel/cmd/artel@latest" ;;
	esac

	from=$releases/latest/download
	[ -z "${ARTEL_VERSION:-}" ] || from=$releases/download/v${ARTEL_VERSION#v}

	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM

	fetch "$from/checksums.txt" "$work/checksums.txt"
	line=$(grep "  artel_.*_${os}_${arch}\.tar\.gz\$" "$work/checksums.txt" | head -n 1) || true
	[ -n "$line" ] || fail "the release has no archive for $os/$arch: $from/checksums.txt"
	want=${line%% *}
	archive=${line##* }

	echo "fetching $archive"
	fetch "$from/$archive" "$work/$archive"
	got=$(digest "$work/$archive")
	[ "$got" = "$want" ] || fail "$archive has the SHA-256 $got, and checksums.txt says $want: nothing was installed; run this again, and report it if it stays"

	tar -xzf "$work/$archive" -C "$work" artel
	mkdir -p "$bin"
	# A program that runs is replaced, not written into.
	cp "$work/artel" "$bin/.artel.new"
	chmod 755 "$bin/.artel.new"
	mv -f "$bin/.artel.new" "$bin/artel"
	echo "installed $bin/artel: $("$bin/artel" version)"

	case :$PATH: in
	*:"$bin":*) echo "now run: artel serve" ;;
	*)
		echo "$bin is not in PATH; add this line to the profile of your shell:"
		echo "  export PATH=\"$bin:\$PATH\""
		echo "now run: $bin/artel serve"
		;;
	esac
}

main
