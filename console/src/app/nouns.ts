// Nouns of the side bar, with the pages of each. A noun is shown to users who can see something on one of its pages.
import type { CapabilityName } from '../data/rights.ts'
import type { IconName } from '../ui/icon.tsx'
import { words } from '../words.ts'
import { canHere } from './organization.ts'
import { paths } from './paths.ts'

export type NounName = keyof typeof words.nouns
type NounPage = { tail: readonly string[]; label: string }
export type Noun = { name: NounName; icon: IconName; pages: readonly NounPage[]; needs: readonly CapabilityName[] }

const page = (label: string, ...tail: string[]): NounPage => ({ label, tail })

const nouns: readonly Noun[] = [
  { name: 'overview', icon: 'overview', pages: [page(words.nouns.overview)], needs: [] },
  {
    name: 'repositories',
    icon: 'repositories',
    pages: [page(words.nouns.repositories, 'repositories')],
    needs: ['repo.list', 'groups.list'],
  },
  {
    name: 'policies',
    icon: 'policies',
    pages: [
      page(words.policyKinds.admission, 'policies', 'admission'),
      page(words.policyKinds.cooldown, 'policies', 'cooldown'),
      page(words.policyKinds.retention, 'policies', 'retention'),
      page(words.policyKinds.risks, 'policies', 'risks'),
    ],
    needs: ['policies.policy.list', 'policies.override.list', 'registry.rules.list', 'repo.list'],
  },
  {
    name: 'members',
    icon: 'members',
    pages: [
      page(words.memberPages.people, 'members'),
      page(words.memberPages.serviceAccounts, 'members', 'service-accounts'),
      page(words.memberPages.groups, 'members', 'groups'),
      page(words.memberPages.invitations, 'members', 'invitations'),
      page(words.memberPages.roles, 'members', 'roles'),
      page(words.memberPages.keyless, 'members', 'keyless'),
      page(words.memberPages.explain, 'members', 'explain'),
    ],
    needs: ['role_bindings.list', 'identity.list', 'group_invites.list', 'identity_providers.list'],
  },
  {
    name: 'integrations',
    icon: 'integrations',
    pages: [
      page(words.integrationKinds.webhooks, 'integrations', 'webhooks'),
      page(words.integrationKinds.mirrors, 'integrations', 'mirrors'),
      page(words.integrationKinds.tokens, 'integrations', 'tokens'),
    ],
    needs: ['subscriptions.list', 'repo.list'],
  },
  { name: 'audit', icon: 'audit', pages: [page(words.nouns.audit, 'audit')], needs: ['audit.list'] },
  {
    name: 'settings',
    icon: 'settings',
    pages: [page(words.nouns.settings, 'settings')],
    needs: ['groups.update', 'groups.delete', 'registry.settings.update'],
  },
]

/** Nouns that the user can use in the current organization. */
export const usableNouns = (): readonly Noun[] =>
  nouns.filter(({ needs }) => needs.length === 0 || needs.some((one) => canHere(one)))

/** Finds the noun and the page of an address by its segments after `~`. */
export function nounPageAt(tail: readonly string[]): { noun: Noun; page: NounPage } | undefined {
  const at = tail.join('/')
  for (const noun of nouns) {
    const found = noun.pages.find((one) => one.tail.join('/') === at)
    if (found) return { noun, page: found }
  }
  return undefined
}

/** Address of the first page of a noun in an organization or a folder. */
export const nounPath = ({ pages }: Noun, names: readonly string[]): string => paths.group(names, ...pages[0]!.tail)
