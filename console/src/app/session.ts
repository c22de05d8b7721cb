// Signed-in user and their permissions. The user is in the HTML of the page; the permissions come from the API.
import { signal } from '@preact/signals'
import { actFor } from '../data/api.ts'
import { type CapabilityName, hasCapability, type Rights, readRights } from '../data/rights.ts'

const { dataset } = document.body

/** User for whom the server rendered the page. */
export const me = {
  uid: dataset.uid ?? '',
  name: dataset.name ?? '',
  email: dataset.email ?? '',
  organization: dataset.organization ?? '',
  isOperator: dataset.operator === 'yes',
  /** True for the operator if the settings of the server have a sign-in provider. */
  hasSignIn: dataset.hasSignIn === 'yes',
  /** Time at which the session ends. */
  sessionEnd: Date.parse(dataset.sessionEnd ?? ''),
  /** Host from which images are pulled. */
  host: dataset.host ?? location.host,
  version: dataset.version ?? '',
}

actFor(me.uid)

/** Permissions of the user. Undefined until they are loaded. */
export const rights = signal<Rights | undefined>(undefined)

/** True once the user's permissions are loaded. Before that, no screen shows that something is not allowed. */
export const isKnown = (): boolean => rights.value !== undefined

/** Checks whether the user has a permission in a group, or in any group. False until the permissions are loaded. */
export const can = (name: CapabilityName, scope?: string): boolean =>
  rights.value !== undefined && hasCapability(rights.value, name, scope)

export async function startSession(): Promise<void> {
  try {
    rights.value = await readRights()
  } catch {
    rights.value = { held: [] }
  }
}
