// Roles that can be granted in an organization: built-in roles, and custom roles of the organization.
import { readPage } from '../../data/list.ts'
import type { Role } from '../../data/types.ts'

export async function readRoles(organization: string, signal: AbortSignal): Promise<Role[]> {
  const read = (filter: Record<string, string | boolean>) =>
    readPage<Role>('/iam/v2/roles', 'roles', { size: 200, query: { ...filter, orderBy: 'name' }, signal })
  const [own, builtIn] = await Promise.all([read({ 'uidp.childrenOf': organization }), read({ 'uidp.inRoot': true })])
  return [...own.items, ...builtIn.items.filter(({ name }) => name !== 'operator')]
}

export const roleOptions = (roles: readonly Role[]) => roles.map(({ uid, name }) => ({ value: uid, label: name }))
