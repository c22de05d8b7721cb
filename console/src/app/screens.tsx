// Table of all screens by address. Each folder in screens/ has a row here.
import type { ComponentChild } from 'preact'
import { AccessScreen } from '../screens/access/access.tsx'
import { ExplainAccessScreen } from '../screens/access/explain-access.tsx'
import { AccountScreen } from '../screens/account/account.tsx'
import { AdvisoriesScreen, AdvisoryScreen } from '../screens/advisories/advisories.tsx'
import { AuditScreen } from '../screens/audit/audit.tsx'
import { DiffScreen } from '../screens/digests/diff.tsx'
import { DigestScreen } from '../screens/digests/digest.tsx'
import { EventsScreen } from '../screens/events/events.tsx'
import { GroupScreen } from '../screens/groups/group.tsx'
import { OrganizationsScreen } from '../screens/groups/organizations.tsx'
import { GroupSettingsScreen } from '../screens/groups/settings.tsx'
import { KeylessScreen } from '../screens/keyless/keyless.tsx'
import { LibrariesScreen } from '../screens/libraries/libraries.tsx'
import { MirrorsScreen } from '../screens/mirrors/mirrors.tsx'
import { PeopleScreen } from '../screens/people/people.tsx'
import { RepoScreen } from '../screens/repos/repo.tsx'
import { AdmissionScreen, CooldownScreen, RetentionScreen, RisksScreen } from '../screens/rules/rules.tsx'
import { SearchScreen } from '../screens/start/search.tsx'
import { StartScreen } from '../screens/start/start.tsx'
import { TagScreen } from '../screens/tags/tag.tsx'
import { Screen } from '../ui/screen.tsx'
import { Empty } from '../ui/states.tsx'
import { words } from '../words.ts'
import type { Route } from './paths.ts'

type Show = (route: Route) => ComponentChild

/** Screens by the first segment of the address. */
const heads: Record<string, Show> = {
  '': () => <StartScreen />,
  search: ({ query }) => <SearchScreen q={query.get('q') ?? ''} />,
  g: (route) => (route.names.length === 0 ? <OrganizationsScreen query={route.query} /> : ofGroup(route)),
  r: (route) => (route.names.length < 1 ? <PageNotFound /> : ofRepo(route)),
  account: () => <AccountScreen />,
  advisories: ({ names, query }) =>
    names.length === 0 ? <AdvisoriesScreen query={query} /> : <AdvisoryScreen uid={names.join('/')} />,
  libraries: ({ query }) => <LibrariesScreen query={query} />,
}

/** Screens of a group by the segment after `~`. */
const groupTails: Record<string, Show> = {
  '': ({ names, query }) => <GroupScreen names={names} query={query} />,
  access: ({ names, query }) => <AccessScreen names={names} query={query} />,
  why: ({ names, query }) => <ExplainAccessScreen names={names} query={query} />,
  people: ({ names }) => <PeopleScreen names={names} />,
  keyless: ({ names }) => <KeylessScreen names={names} />,
  promises: ({ names, query }) => <RetentionScreen names={names} query={query} />,
  pulls: ({ names, query }) => <CooldownScreen names={names} query={query} />,
  gates: ({ names, query }) => <AdmissionScreen names={names} query={query} />,
  risks: ({ names, query }) => <RisksScreen names={names} query={query} />,
  mirrors: ({ names }) => <MirrorsScreen names={names} />,
  events: ({ names }) => <EventsScreen names={names} />,
  settings: ({ names }) => <GroupSettingsScreen names={names} />,
  audit: ({ names, query }) => <AuditScreen names={names} query={query} />,
}

/** Screens of a repo by the segment after `~`. */
const repoTails: Record<string, Show> = {
  '': ({ names, query }) => <RepoScreen names={names} query={query} />,
  tags: ({ names, tail, query }) => <TagScreen names={names} tag={tail[1] ?? ''} query={query} />,
  digests: ({ names, tail }) => <DigestScreen names={names} digest={tail[1] ?? ''} />,
  diff: ({ names, tail }) => {
    const [older = '', newer = ''] = (tail[1] ?? '').split('..')
    return <DiffScreen names={names} older={older} newer={newer} />
  },
}

const ofGroup = (route: Route) => (groupTails[route.tail[0] ?? ''] ?? PageNotFound)(route)
const ofRepo = (route: Route) => (repoTails[route.tail[0] ?? ''] ?? PageNotFound)(route)

export function screenOf(route: Route): ComponentChild {
  return (heads[route.head] ?? PageNotFound)(route)
}

function PageNotFound() {
  return (
    <Screen title={words.pageNotFound}>
      <Empty>{words.pageNotFoundText}</Empty>
    </Screen>
  )
}
