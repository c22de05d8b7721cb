// Hooks: functions of higher domains that lower domains call when data changes. The lower domain declares a hook in its hooks.ts.
// Higher domains implement it in files that end in .hooks.ts. Hooks run in the caller's transaction, in the order of the layers.

import type { AdvisoryHooks } from './domains/advisories/hooks.ts'
import type { IamHooks } from './domains/iam/hooks.ts'
import type { OutboxHooks } from './domains/outbox/hooks.ts'
import type { RegistryHooks } from './domains/registry/hooks.ts'

type Declared = OutboxHooks & IamHooks & RegistryHooks & AdvisoryHooks

/** Hooks that a domain implements. */
export type DomainHooks = Partial<Declared>

/** For each hook, the functions of all domains that implement it, the lowest domain first. */
export type Hooks = { readonly [K in keyof Declared]: readonly Declared[K][] }

/** Merges the hooks of all domains. The domains must be in the order of their layers. */
export function joinHooks(implemented: readonly DomainHooks[]): Hooks {
  const of = <K extends keyof Declared>(name: K): Declared[K][] =>
    implemented.map((hooks) => hooks[name]).filter((hook): hook is Declared[K] => hook !== undefined)
  return {
    resourceNames: of('resourceNames'),
    organizationCreated: of('organizationCreated'),
    groupDeleting: of('groupDeleting'),
    identityDeleting: of('identityDeleting'),
    sessionEnded: of('sessionEnded'),
    providerDeleting: of('providerDeleting'),
    roleInUse: of('roleInUse'),
    quotaUse: of('quotaUse'),
    requireRepos: of('requireRepos'),
    pushBeginning: of('pushBeginning'),
    manifestPushed: of('manifestPushed'),
    mayChangeTags: of('mayChangeTags'),
    mayAssignTag: of('mayAssignTag'),
    mayDeleteTag: of('mayDeleteTag'),
    tagAssigning: of('tagAssigning'),
    tagUnassigned: of('tagUnassigned'),
    mayDelete: of('mayDelete'),
    manifestDeleted: of('manifestDeleted'),
    sourceChanging: of('sourceChanging'),
    sourceChanged: of('sourceChanged'),
    packagesRead: of('packagesRead'),
    repoHidden: of('repoHidden'),
    repoDeleting: of('repoDeleting'),
    advisoriesChanged: of('advisoriesChanged'),
  }
}
