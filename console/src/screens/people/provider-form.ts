// Form of an identity provider.
import type { Provider, Role } from '../../data/types.ts'
import type { Field } from '../../ui/form.tsx'
import { peopleWords } from '../../words/people.ts'
import { words } from '../../words.ts'
import { roleOptions } from './roles.ts'

/** Fields of the form, for a new or an existing provider. */
export function providerFields(roles: readonly Role[], one?: Provider): Field[] {
  const oidc = one?.oidc
  const viewer = roles.find(({ name }) => name === 'viewer')?.uid ?? ''
  return [
    { name: 'name', label: words.name, value: one?.name ?? '' },
    { name: 'issuer', label: peopleWords.issuer, type: 'url', value: oidc?.issuer ?? '' },
    { name: 'clientId', label: peopleWords.clientId, value: oidc?.clientId ?? '' },
    {
      ...{ name: 'clientSecret', label: peopleWords.clientSecret, type: 'password', isOptional: true },
      hint: one ? peopleWords.secretStays : peopleWords.neverShown,
    },
    { name: 'pkceEnabled', label: peopleWords.pkce, type: 'check', value: oidc && !oidc.pkceEnabled ? '' : 'yes' },
    {
      ...{ name: 'additionalScopes', label: peopleWords.scopes, hint: peopleWords.scopesHint, isOptional: true },
      value: oidc ? oidc.additionalScopes.join(' ') : 'email profile',
    },
    {
      ...{ name: 'groupsClaim', label: peopleWords.groupsClaim, hint: peopleWords.groupsClaimHint, isOptional: true },
      value: oidc?.groupsClaim ?? '',
    },
    {
      ...{ name: 'defaultRole', label: peopleWords.defaultRole, type: 'select', options: roleOptions(roles) },
      value: one?.defaultRole ?? viewer,
    },
  ]
}

const paths = ['name', 'default_role', 'oidc.issuer', 'oidc.client_id', 'oidc.pkce_enabled', 'oidc.groups_claim']

/**
 * Body for the API. `mask` lists the fields of an update. An empty secret is omitted, so that the server keeps the stored one.
 */
export function providerOf(values: Record<string, string>): { body: object; mask: string } {
  const { name, defaultRole, issuer, clientId, clientSecret, groupsClaim } = values
  const additionalScopes = (values.additionalScopes ?? '').split(/[\s,]+/).filter((one) => one !== '')
  const oidc = { issuer, clientId, groupsClaim, additionalScopes, pkceEnabled: values.pkceEnabled === 'yes' }
  return {
    body: { name, defaultRole, oidc: { ...oidc, ...(clientSecret && { clientSecret }) } },
    mask: [...paths, 'oidc.additional_scopes', ...(clientSecret ? ['oidc.client_secret'] : [])].join(),
  }
}
