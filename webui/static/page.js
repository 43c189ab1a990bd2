// SPDX-License-Identifier: Apache-2.0

// The entry point of the scripts. Without them everything works by forms and
// links.

import "./place.js";
import { agents } from "./agents.js";
import { apps } from "./apps.js";
import "./copy.js";
import "./keys.js";
import "./models.js";
import "./services.js";
import { composer } from "./composer.js";
import { early } from "./early.js";
import { edits } from "./edit.js";
import { left } from "./left.js";
import { importing } from "./import.js";
import { follow } from "./live.js";
import { order } from "./order.js";
import { panel } from "./panel.js";
import { toasts } from "./toasts.js";
import { watch } from "./watch.js";
import { rules } from "./rules.js";
import { skills } from "./skills.js";
import { zoom } from "./zoom.js";

const tell = early();
toasts();
panel();
composer();
edits();
follow();
importing();
skills();
watch();
order();
zoom();
left();
rules();
agents();
apps();
setTimeout(tell); // htmx listens by then
