// All texts of the console. Each screen has a module in words/. The module shared.ts has the texts of several screens.
import { access } from './words/access.ts'
import { account } from './words/account.ts'
import { admission } from './words/admission.ts'
import { advisories } from './words/advisories.ts'
import { audit } from './words/audit.ts'
import { cooldown } from './words/cooldown.ts'
import { digests } from './words/digests.ts'
import { events } from './words/events.ts'
import { frame } from './words/frame.ts'
import { groups } from './words/groups.ts'
import { keyless } from './words/keyless.ts'
import { libraries } from './words/libraries.ts'
import { mirrors } from './words/mirrors.ts'
import { people } from './words/people.ts'
import { repos } from './words/repos.ts'
import { retention } from './words/retention.ts'
import { risks } from './words/risks.ts'
import { rules } from './words/rules.ts'
import { shared } from './words/shared.ts'
import { start } from './words/start.ts'
import { tags } from './words/tags.ts'

export { numbers } from './words/format.ts'

export const words = {
  ...{ ...shared, ...frame, ...start, ...groups, ...repos, ...tags, ...digests, ...rules, ...retention, ...cooldown },
  ...{ ...admission, ...risks, ...mirrors, ...access, ...account, ...keyless, ...events, ...audit, ...people },
  ...{ ...advisories, ...libraries },
}
