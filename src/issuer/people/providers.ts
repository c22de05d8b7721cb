// Sign-in providers, from the settings and of organizations.
import { readFile } from 'node:fs/promises'
import type { App } from '#app.ts'
import {
  findForSignIn,
  findProviderOfVerified,
  providersOf,
  providersOfNamed,
} from '#domains/iam/identity-providers/identity-providers.service.ts'
import { AppError } from '#lib/errors.ts'
import { isUid, parentOf, rootOf } from '#lib/uid.ts'

export type SignInProvider = {
  /** Uid of an organization's provider, or name of a provider in the settings. */
  id: string
  label: string
  issuer: string
  clientId: string
  secret: string
  scopes: readonly string[]
  /** Organization to which sign-ins with this provider are limited. Empty for providers in the settings. */
  organization: string
  defaultRole: string
  groupsClaim: string
  /** Claim whose value is the person's external ID in SCIM. */
  externalIdClaim: 'sub' | 'oid'
}

/** Name and label of the providers in the settings that the sign-in page offers. */
export function offered({ config }: Pick<App, 'config'>): { id: string; label: string }[] {
  return config.oidcProviders.flatMap(({ name, label }) => (name && label ? [{ id: name, label }] : []))
}

/** Provider of an organization, as the sign-in page offers it. */
export type OrganizationProvider = { id: string; label: string; organization: string }

/** Providers of an organization, the oldest first. */
export async function providersOfOrganization(app: App, organization: string): Promise<OrganizationProvider[]> {
  return (await providersOf(app.db, organization)).map(toOrganizationProvider)
}

/**
 * Providers that a person can mean: of the organization with this name or with this verified email domain, or the provider with
 * this uid. An email address counts as its domain.
 */
export async function findOrganizationProviders(app: App, text: string): Promise<OrganizationProvider[]> {
  if (!isUid(text)) return (await providersOfNamed(app.db, text)).map(toOrganizationProvider)
  return (await providersOf(app.db, rootOf(text))).filter(({ uid }) => uid === text).map(toOrganizationProvider)
}

const toOrganizationProvider = ({ uid, name, organization }: Awaited<ReturnType<typeof providersOf>>[number]) => ({
  id: uid,
  label: name,
  organization,
})

/** Provider with this uid, or in the settings with this name. Undefined if there is none. */
export async function findSignInProvider(app: App, id: string): Promise<SignInProvider | undefined> {
  return isUid(id) ? findOfOrganization(app, id) : findInSettings(app, id)
}

/**
 * Provider for the parameter `idp_id`: the uid of a provider, the name of an organization, or a verified email domain. If an
 * organization has several providers, it is the oldest one.
 */
export async function findByIdpId(app: App, idpId: string): Promise<SignInProvider | undefined> {
  if (isUid(idpId)) return findOfOrganization(app, idpId)
  const [oldest] = await providersOfNamed(app.db, idpId)
  return oldest && findOfOrganization(app, oldest.uid)
}

/** True if the organization of this name is verified and has a provider. */
export async function isSignInOrganization(app: App, name: string): Promise<boolean> {
  return (await findProviderOfVerified(app.db, name)) !== undefined
}

async function findOfOrganization(app: App, uid: string): Promise<SignInProvider | undefined> {
  const found = await findForSignIn(app, uid)
  if (!found) return undefined
  const { provider, secret, externalIdClaim } = found
  const { issuer, clientId, additionalScopes, groupsClaim } = provider.oidc
  return {
    id: uid,
    label: provider.name,
    issuer,
    clientId,
    secret,
    scopes: ['openid', ...additionalScopes],
    organization: rootOf(parentOf(uid)),
    defaultRole: provider.defaultRole,
    groupsClaim,
    externalIdClaim,
  }
}

async function findInSettings({ config }: App, name: string): Promise<SignInProvider | undefined> {
  const found = config.oidcProviders.find((one) => one.label !== undefined && one.name === name)
  if (!found) return undefined
  const { issuer, audience, label, secretFile, scopes = 'email profile' } = found
  return {
    id: name,
    label: label!,
    issuer,
    clientId: audience,
    secret: secretFile === undefined ? '' : await readSecret(secretFile),
    scopes: ['openid', ...scopes.split(' ').filter((one) => one !== '' && one !== 'openid')],
    organization: '',
    defaultRole: '',
    groupsClaim: '',
    externalIdClaim: 'sub',
  }
}

/** The file is read for each sign-in, so that the secret can be changed while the server runs. */
async function readSecret(file: string): Promise<string> {
  try {
    const secret = (await readFile(file, 'utf8')).trim()
    if (secret === '' || secret.length > 4096) {
      throw new Error('the client secret file is empty or has more than 4096 characters')
    }
    return secret
  } catch (cause) {
    throw new AppError(
      'UNAVAILABLE',
      'the client secret of the identity provider cannot be read; the operator has to check its file',
      { cause },
    )
  }
}
