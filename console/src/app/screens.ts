// Screens by address, and the scripts that contain them. Each area of the console is a script of its own.
import type { Screens } from './area.ts'
import type { Route } from './paths.ts'

type Area = { screens: Screens }

const areas = {
  overview: () => import('../areas/overview.tsx'),
  search: () => import('../areas/search.tsx'),
  repositories: () => import('../areas/repositories.tsx'),
  images: () => import('../areas/images.tsx'),
  policies: () => import('../areas/policies.tsx'),
  members: () => import('../areas/members.tsx'),
  integrations: () => import('../areas/integrations.tsx'),
  settings: () => import('../areas/settings.tsx'),
  server: () => import('../areas/server.tsx'),
  account: () => import('../areas/account.tsx'),
}
export type AreaName = keyof typeof areas

/** Area and name of a screen. */
export type ScreenName = { area: AreaName; screen: string }

const at = (area: AreaName, screen: string): ScreenName => ({ area, screen })

/** Screens of a group by the segments after `~`. The first one is a noun of the side bar. */
const groupTails: Record<string, ScreenName> = {
  repositories: at('repositories', 'group'),
  'policies/admission': at('policies', 'admission'),
  'policies/cooldown': at('policies', 'cooldown'),
  'policies/retention': at('policies', 'retention'),
  'policies/risks': at('policies', 'risks'),
  members: at('members', 'people'),
  'members/service-accounts': at('members', 'serviceAccounts'),
  'members/groups': at('members', 'groups'),
  'members/roles': at('members', 'roles'),
  'members/explain': at('members', 'explain'),
  'members/invitations': at('members', 'invitations'),
  'members/keyless': at('members', 'keyless'),
  'integrations/mirrors': at('integrations', 'mirrors'),
  'integrations/tokens': at('integrations', 'tokens'),
  'integrations/webhooks': at('integrations', 'webhooks'),
  audit: at('settings', 'audit'),
  settings: at('settings', 'settings'),
}

/** Screens of a repository by the segment after `~`. */
const repoTails: Record<string, ScreenName> = {
  tags: at('images', 'tag'),
  digests: at('images', 'digest'),
  diff: at('images', 'diff'),
}

/** Tabs of a repository by the parameter `view` of the address. */
const repoViews: Record<string, ScreenName> = {
  tags: at('repositories', 'tags'),
  history: at('repositories', 'history'),
  readme: at('repositories', 'readme'),
  pull: at('repositories', 'pull'),
  settings: at('repositories', 'repoSettings'),
  promises: at('policies', 'repoRetention'),
  pulls: at('policies', 'repoCooldown'),
  gates: at('policies', 'repoAdmission'),
  risks: at('policies', 'repoRisks'),
  mirror: at('integrations', 'repoMirror'),
}

/** Finds the screen of an address. Undefined if the address has none. */
export function findScreen({ head, names, tail, query }: Route): ScreenName | undefined {
  if (head === 'g' && names.length === 0) return undefined
  if (head === 'g' && tail.length === 0)
    return names.length === 1 ? at('overview', 'overview') : groupTails.repositories
  if (head === 'g') return ownValue(groupTails, tail.join('/'))
  if (head === 'r' && names.length === 0) return undefined
  if (head === 'r' && tail.length > 0) return ownValue(repoTails, tail[0]!)
  if (head === 'r') return ownValue(repoViews, query.get('view') ?? 'tags')
  if (head === 'advisories') return at('server', names.length === 0 ? 'advisories' : 'advisory')
  return ownValue(heads, head)
}

/** An address can have the name of a property that every object inherits, such as `constructor`. */
const ownValue = (table: Record<string, ScreenName>, key: string): ScreenName | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined

const heads: Record<string, ScreenName> = {
  '': at('overview', 'home'),
  setup: at('server', 'setup'),
  organizations: at('server', 'organizations'),
  search: at('search', 'search'),
  package: at('search', 'package'),
  account: at('account', 'account'),
  libraries: at('server', 'libraries'),
  sources: at('server', 'sources'),
}

const loaded = new Map<AreaName, Area>()

/** Screens of an area if its script is loaded. */
export const screensOf = (area: AreaName): Screens | undefined => loaded.get(area)?.screens

/** Loads the script of an area. The browser loads each script once. */
export async function loadArea(area: AreaName): Promise<Screens> {
  const module: Area = await areas[area]()
  loaded.set(area, module)
  return module.screens
}
