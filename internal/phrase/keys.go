// SPDX-License-Identifier: Apache-2.0

package phrase

// A Key names a text of the catalogue. The part before the first dot says who
// reads it: type (names of media types), export (people who open an exported
// file), agent (who writes agents), route and tool (models), reminder (models,
// on every call), compact (models that sum up a history, and read that), filler
// and limit (models, in the place of what is missing), demo (the built-in
// stand-in model), page (people).
type Key string

// What a model reads in the place of a part that it cannot take, and beside
// one that it can.
const (
	RouteDescribed  Key = "route.described"  // Name, Ref, Type, Size
	RouteCrowded    Key = "route.crowded"    // Name, Ref, Type, Size
	RouteStale      Key = "route.stale"      // Name, Ref, Type, Size
	RouteSeeAgain   Key = "route.see_again"  // ID
	RouteReadable   Key = "route.readable"   // ID
	RouteUnreadable Key = "route.unreadable" // Name
	RouteContent    Key = "route.content"    // Name
	RouteNoName     Key = "route.no_name"
	RouteNoID       Key = "route.no_id"
)

// What is wrong with the definition of an agent.
const (
	AgentName        Key = "agent.name"         // Max
	AgentTooLong     Key = "agent.too_long"     // Count, Max
	AgentTooMany     Key = "agent.too_many"     // Count, Max
	AgentTwice       Key = "agent.twice"        // Name
	AgentNoService   Key = "agent.no_service"   // Name, Names
	AgentNoTool      Key = "agent.no_tool"      // Name, Names
	AgentNoAgent     Key = "agent.no_agent"     // Name, Names
	AgentNoSubagents Key = "agent.no_subagents" // Name
	AgentPermission  Key = "agent.permission"   // Name
	AgentLimit       Key = "agent.limit"        // Value, Max
	AgentNegative    Key = "agent.negative"
	AgentProblem     Key = "agent.problem" // Problem
	AgentNoPrompt    Key = "agent.no_prompt"
	AgentNotUTF8     Key = "agent.not_utf8"
)

// ExportReadme is the README.md of an exported conversation, as Markdown.
const ExportReadme Key = "export.readme" // Title

// The tail reminder: what a model is told at the end of every request.
const (
	ReminderPlan        Key = "reminder.plan" // Version, Done, Total
	ReminderNoPlan      Key = "reminder.no_plan"
	ReminderInventory   Key = "reminder.inventory" // Count
	ReminderNoArtifacts Key = "reminder.no_artifacts"
	ReminderMore        Key = "reminder.more" // Count
	ReminderCut         Key = "reminder.cut"  // Count, ID
	ReminderTime        Key = "reminder.time" // Time
)

// What is said where an API wants somebody to speak, and at the end of a
// message of which only the beginning fits.
const (
	FillerUser      Key = "filler.user"
	FillerAssistant Key = "filler.assistant"
	LimitCut        Key = "limit.cut" // Shown, Total

	AttachmentPending Key = "attachment.pending" // Name, Filename
)

// The compaction of a history: what a model is asked, and what stands around
// its summary.
const (
	CompactAsk      Key = "compact.ask"
	CompactFrame    Key = "compact.frame"    // Count
	CompactWords    Key = "compact.words"    // before the user's own words
	CompactTitle    Key = "compact.title"    // Number
	CompactReplaced Key = "compact.replaced" // a heading; Count
)

// What models are asked beside the work of agents.
const (
	TitleAsk    Key = "title.ask"
	SelectorAsk Key = "selector.ask" // Services
)

// Failures of tools that a model can mend.
const (
	ToolNotFound       Key = "tool.not_found"
	ToolUnknown        Key = "tool.unknown"         // Name, Names
	ToolSubagentFailed Key = "tool.subagent_failed" // Name, Problem
	ToolSubagentSaid   Key = "tool.subagent_said"
	ToolBadArguments   Key = "tool.bad_arguments"  // Name, Problem
	ToolTooLong        Key = "tool.too_long"       // Count, Problem
	ToolDenied         Key = "tool.denied"         // Name
	ToolDeniedBecause  Key = "tool.denied_because" // Name, Comment
	ToolUnanswered     Key = "tool.unanswered"     // Name
	ToolCutOff         Key = "tool.cut_off"        // Name
	ToolCutOffDone     Key = "tool.cut_off_done"   // Name, Refs
)

// What a model gets of a result that is too long to be shown.
const (
	ToolOffloaded    Key = "tool.offloaded"     // Count, Lines, Shape, ID, Ref, Next, Grep
	ToolOffloadedGap Key = "tool.offloaded_gap" // Count
	GatewayOffloaded Key = "gateway.offloaded"  // Count, Lines, Shape, Ref, URL
)

// The sentences of the demo model.
const (
	DemoSummary       Key = "demo.summary" // Notice, Words, Artifacts, Calls, Memory
	DemoNotice        Key = "demo.notice"
	DemoThought       Key = "demo.thought"
	DemoBegin         Key = "demo.begin" // Count
	DemoBeginAlone    Key = "demo.begin_alone"
	DemoReading       Key = "demo.reading" // Count
	DemoDelegating    Key = "demo.delegating"
	DemoInstruction   Key = "demo.instruction" // Name
	DemoLooking       Key = "demo.looking"
	DemoServed        Key = "demo.served" // Count
	DemoTicking       Key = "demo.ticking"
	DemoWriting       Key = "demo.writing"
	DemoClosing       Key = "demo.closing"
	DemoMending       Key = "demo.mending"
	DemoPlanTitle     Key = "demo.plan_title"
	DemoReportTitle   Key = "demo.report_title"
	DemoItemLook      Key = "demo.item_look"    // Number, Name
	DemoItemMessage   Key = "demo.item_message" // Number
	DemoItemReport    Key = "demo.item_report"  // Number
	DemoMessageSize   Key = "demo.message_size" // Count
	DemoNoMessage     Key = "demo.no_message"
	DemoFindings      Key = "demo.findings"
	DemoEarlier       Key = "demo.earlier"
	DemoImage         Key = "demo.image"        // Format, Width, Height, Size
	DemoPDF           Key = "demo.pdf"          // Count, Bytes
	DemoPDFNoPages    Key = "demo.pdf_no_pages" // Bytes
	DemoFile          Key = "demo.file"         // Type, Size
	DemoExtracted     Key = "demo.extracted"    // Found
	DemoWritten       Key = "demo.written"      // Found
	DemoHeading       Key = "demo.heading"      // Heading, Lines
	DemoNoHeading     Key = "demo.no_heading"   // Lines
	DemoCannotRead    Key = "demo.cannot_read"
	DemoSection       Key = "demo.section" // Number
	DemoDone          Key = "demo.done"
	DemoDoneUnwritten Key = "demo.done_unwritten"
	DemoNoTools       Key = "demo.no_tools"
)

// TypeName returns the friendly name of a media type ("PNG image"), or the
// media type itself where the catalogue has none. The empty type is a binary
// file.
func (l Locale) TypeName(mediaType string) string {
	if k := typeKey(mediaType); k != "" {
		return l.Say(k, nil)
	}
	return mediaType
}

// The friendly names of media types.
const (
	TypeMarkdown   Key = "type.markdown"
	TypePlainText  Key = "type.plain"
	TypeHTML       Key = "type.html"
	TypeCSV        Key = "type.csv"
	TypeTSV        Key = "type.tsv"
	TypeJSON       Key = "type.json"
	TypeXML        Key = "type.xml"
	TypeYAML       Key = "type.yaml"
	TypeRTF        Key = "type.rtf"
	TypeODT        Key = "type.odt"
	TypeODS        Key = "type.ods"
	TypeODP        Key = "type.odp"
	TypeEPUB       Key = "type.epub"
	TypeShell      Key = "type.shell"
	TypeJPEG       Key = "type.jpeg"
	TypePNG        Key = "type.png"
	TypeGIF        Key = "type.gif"
	TypeWebP       Key = "type.webp"
	TypeBMP        Key = "type.bmp"
	TypeTIFF       Key = "type.tiff"
	TypeSVG        Key = "type.svg"
	TypePDF        Key = "type.pdf"
	TypeWord       Key = "type.word"
	TypeExcel      Key = "type.excel"
	TypePowerPoint Key = "type.powerpoint"
	TypeMP3        Key = "type.mp3"
	TypeWAV        Key = "type.wav"
	TypeOGG        Key = "type.ogg"
	TypeMP4        Key = "type.mp4"
	TypeWebM       Key = "type.webm"
	TypeQuickTime  Key = "type.quicktime"
	TypeZIP        Key = "type.zip"
	TypeRAR        Key = "type.rar"
	TypeBinary     Key = "type.binary"
)

func typeKey(mediaType string) Key {
	switch mediaType {
	case "application/rtf":
		return TypeRTF
	case "application/vnd.oasis.opendocument.text":
		return TypeODT
	case "application/vnd.oasis.opendocument.spreadsheet":
		return TypeODS
	case "application/vnd.oasis.opendocument.presentation":
		return TypeODP
	case "application/epub+zip":
		return TypeEPUB
	case "text/x-shellscript":
		return TypeShell
	case "text/markdown":
		return TypeMarkdown
	case "text/plain":
		return TypePlainText
	case "text/html":
		return TypeHTML
	case "text/csv":
		return TypeCSV
	case "text/tab-separated-values":
		return TypeTSV
	case "application/json":
		return TypeJSON
	case "application/xml":
		return TypeXML
	case "application/yaml":
		return TypeYAML
	case "image/jpeg":
		return TypeJPEG
	case "image/png":
		return TypePNG
	case "image/gif":
		return TypeGIF
	case "image/webp":
		return TypeWebP
	case "image/bmp":
		return TypeBMP
	case "image/tiff":
		return TypeTIFF
	case "image/svg+xml":
		return TypeSVG
	case "application/pdf":
		return TypePDF
	case "application/msword", "application/vnd.openxmlformats-officedocument.wordprocessingml.document":
		return TypeWord
	case "application/vnd.ms-excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":
		return TypeExcel
	case "application/vnd.ms-powerpoint", "application/vnd.openxmlformats-officedocument.presentationml.presentation":
		return TypePowerPoint
	case "audio/mpeg", "audio/mp3":
		return TypeMP3
	case "audio/wav":
		return TypeWAV
	case "audio/ogg":
		return TypeOGG
	case "video/mp4":
		return TypeMP4
	case "video/webm":
		return TypeWebM
	case "video/quicktime":
		return TypeQuickTime
	case "application/zip":
		return TypeZIP
	case "application/x-rar-compressed":
		return TypeRAR
	case "application/octet-stream", "":
		return TypeBinary
	}
	return ""
}

// Why a model saw a message or a file in a call, or did not.
const (
	WhySent        Key = "why.sent"
	WhyChanged     Key = "why.changed" // Processors
	WhyMerged      Key = "why.merged"  // Message, Processor
	WhyDropped     Key = "why.dropped"
	WhyCut         Key = "why.cut"
	WhyRemoved     Key = "why.removed" // Processor
	WhyMuted       Key = "why.muted"
	WhyBranch      Key = "why.other_branch"
	WhyLater       Key = "why.later"
	WhySummarized  Key = "why.summarized"  // Message
	WhyAgent       Key = "why.other_agent" // Agent
	WhyBlank       Key = "why.blank"
	WhyUnattached  Key = "why.not_attached" // ID
	WhyNotHere     Key = "why.not_here"
	WhyNative      Key = "why.file_native"      // Name
	WhyConverted   Key = "why.file_converted"   // Name
	WhyExtracted   Key = "why.file_extracted"   // Name
	WhyTranscribed Key = "why.file_transcribed" // Name
	WhyDescribed   Key = "why.file_described"   // Name
)
