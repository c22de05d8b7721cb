// The signed-in person, from the page, and their permissions, from the API.
import { signal } from '@preact/signals'
import { type CapabilityName, hasCapability, type Rights, readRights } from '../data/rights.ts'

const { dataset } = document.body

/** Person for whom the page was made. */
export const me = {
  uid: dataset.uid ?? '',
  name: dataset.name ?? '',
  email: dataset.email ?? '',
  organization: dataset.organization ?? '',
  isOperator: dataset.operator === 'yes',
  /** Host that images are pulled from. */
  host: dataset.host ?? location.host,
  version: dataset.version ?? '',
}

const rights = signal<Rights | undefined>(undefined)

/** True once the person's permissions are known. Before that, no screen says that something is not allowed. */
export const isKnown = (): boolean => rights.value !== undefined

/** Checks if the person has a permission in a group, or in any group. False until it is known. */
export const can = (name: CapabilityName, place?: string): boolean =>
  rights.value !== undefined && hasCapability(rights.value, name, place)

export async function startSession(): Promise<void> {
  try {
    rights.value = await readRights()
  } catch {
    rights.value = { held: [] }
  }
}
