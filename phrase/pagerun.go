// SPDX-License-Identifier: Apache-2.0

package phrase

// The texts of the page about runs at work: questions of permission, messages
// that wait, branches, what runs took.
const (
	PageAsksOther           Key = "page.asks_other"            // Name
	PageAsksCreate          Key = "page.asks_create_artifact"  // Subject
	PageAsksUpdate          Key = "page.asks_update_artifact"  // Subject
	PageAsksRewrite         Key = "page.asks_rewrite_artifact" // Subject
	PageAsksRename          Key = "page.asks_rename_artifact"  // Subject
	PageAsksRestore         Key = "page.asks_restore_artifact" // Subject
	PageAsksDelete          Key = "page.asks_delete_artifact"  // Subject
	PageAsksPut             Key = "page.asks_put_artifact"     // Subject
	PageAsksRead            Key = "page.asks_read_artifact"    // Subject
	PageAsksGet             Key = "page.asks_get_artifact"     // Subject
	PageAsksList            Key = "page.asks_list_artifacts"
	PageAsksGrep            Key = "page.asks_grep_artifacts"
	PageAsksDiff            Key = "page.asks_diff_artifact" // Subject
	PageAsksDelegate        Key = "page.asks_call_subagent" // Subject
	PageAsked               Key = "page.asked"              // Name
	PageAllow               Key = "page.allow"
	PageAllowAlways         Key = "page.allow_always"
	PageDeny                Key = "page.deny"
	PageDenyWhy             Key = "page.deny_why"
	PageDenyComment         Key = "page.deny_comment"
	PageAskUntil            Key = "page.ask_until" // Time
	PageAskLeft             Key = "page.ask_left"
	PageAskAbout            Key = "page.ask_about"
	PageAllowed             Key = "page.decided_allow"
	PageDenied              Key = "page.decided_deny"
	PageAllowedAlways       Key = "page.decided_always"
	PageDeniedBySilence     Key = "page.undecided_timeout"
	PageDeniedByEnd         Key = "page.undecided_ended"
	PageDecided             Key = "page.decided"
	PageCallWaits           Key = "page.call_waits"
	PageWaits               Key = "page.waits"
	PageCompacts            Key = "page.compacts"
	PageQueue               Key = "page.queue"
	PageQueueTitle          Key = "page.queue_title"
	PageTell                Key = "page.tell"
	PageTellTitle           Key = "page.tell_title"
	PageTellFiles           Key = "page.tell_files"
	PageTold                Key = "page.told"
	PageWaiting             Key = "page.waiting"
	PageQueued              Key = "page.queued"
	PageInjecting           Key = "page.injecting"
	PageQueuedEdit          Key = "page.queued_edit"
	PageQueuedCancel        Key = "page.queued_cancel"
	PageReturnedAttachments Key = "page.returned_attachments"
	PageKeyQuestion         Key = "page.key_question"
	PageKeyTell             Key = "page.key_tell"
	PageEditMessage         Key = "page.edit_message"
	PageEditAbout           Key = "page.edit_about"
	PageAskAgain            Key = "page.ask_again"
	PageRetry               Key = "page.retry"
	PageMute                Key = "page.mute"
	PageUnmute              Key = "page.unmute"
	PageMuted               Key = "page.muted"
	PageBranches            Key = "page.branches"
	PageBranchOf            Key = "page.branch_of" // Number, Count
	PageBranchPrevious      Key = "page.branch_previous"
	PageBranchNext          Key = "page.branch_next"
	PageKeyBranch           Key = "page.key_branch"
	PageKeyEdit             Key = "page.key_edit"
)
