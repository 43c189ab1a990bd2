module github.com/artelhq/artel

go 1.26.0
