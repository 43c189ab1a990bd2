// SPDX-License-Identifier: Apache-2.0

package storetest

import "github.com/artelhq/artel/store"

type brokenGatewayLog struct {
	store.GatewayLog
	list func(store.GatewayQuery) ([]store.GatewayEntry, string, error)
	keep func(int) error
}

func (b brokenGatewayLog) List(q store.GatewayQuery) ([]store.GatewayEntry, string, error) {
	return or(b.list, b.GatewayLog.List)(q)
}

func (b brokenGatewayLog) Trim(newest int) error {
	return or(b.keep, b.GatewayLog.Trim)(newest)
}

// gatewayTwins are those of the clauses about the gateway's log.
func gatewayTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"gateway/list": nouns(func(tx *store.Tx) { // changed ones are not told from others
			real := tx.GatewayLog
			tx.GatewayLog = brokenGatewayLog{GatewayLog: real, list: func(q store.GatewayQuery) ([]store.GatewayEntry, string, error) {
				q.Changed = false
				return real.List(q)
			}}
		}),
		"gateway/keep": nouns(func(tx *store.Tx) { // one too many stays
			real := tx.GatewayLog
			tx.GatewayLog = brokenGatewayLog{GatewayLog: real, keep: func(n int) error { return real.Trim(n + 1) }}
		}),
	}
}
