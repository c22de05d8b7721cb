// Choice of a role with its description, and of the group where the role applies.
import { useState } from 'preact/hooks'
import { readPage } from '../../data/list.ts'
import { parentOf } from '../../data/names.ts'
import type { Group, Role } from '../../data/types.ts'
import { RadioList } from '../../ui/radio-list.tsx'
import { memberWords } from '../../words/members.ts'
import { words } from '../../words.ts'

/** Roles that are offered first, in this order. */
const usual = ['viewer', 'registry.push', 'editor', 'owner', 'auditor']
const most = 5

type Props = { roles: readonly Role[]; value: string; onChoose: (uid: string) => void }

export function RoleChoice({ roles, value, onChoose }: Props) {
  const [isAll, setAll] = useState(false)
  const first = sortRoles(roles)
  const shown = isAll ? first : first.filter(({ uid }, i) => i < most || uid === value)
  return (
    <>
      <RadioList
        label={words.role}
        name="role"
        options={shown.map(({ uid, name, description }) => ({ value: uid, label: name, description }))}
        value={value}
        onChoose={onChoose}
      />
      {shown.length < first.length && (
        <button type="button" class="ghost" onClick={() => setAll(true)}>
          {memberWords.moreRoles(first.length - shown.length)}
        </button>
      )}
    </>
  )
}

/** Usual roles first, then custom roles, then all others. */
export function sortRoles(roles: readonly Role[]): Role[] {
  const rankOf = ({ name, uid }: Role): number => {
    const at = usual.indexOf(name)
    return at >= 0 ? at : parentOf(uid) === '' ? most + 1 : most
  }
  return [...roles].sort((a, b) => rankOf(a) - rankOf(b) || a.name.localeCompare(b.name))
}

export const defaultRole = (roles: readonly Role[]): string =>
  roles.find(({ name }) => name === 'viewer')?.uid ?? roles[0]?.uid ?? ''

/** The group and its folders, with their paths. At most two hundred folders. */
export async function readScopes(group: Group, signal?: AbortSignal): Promise<{ value: string; label: string }[]> {
  const query = { 'uidp.descendantsOf': group.uid, orderBy: 'name' }
  const { items } = await readPage<Group>('/iam/v2/groups', 'groups', { size: 200, query, signal })
  const byUid = new Map([...items, group].map((one) => [one.uid, one]))
  const pathOf = (uid: string): string => {
    const one = byUid.get(uid)
    if (!one) return ''
    return uid === group.uid ? one.name : [pathOf(parentOf(uid)), one.name].filter(Boolean).join('/')
  }
  const folders = items.filter(({ uid }) => uid !== group.uid)
  return [group, ...folders].map(({ uid }) => ({ value: uid, label: pathOf(uid) }))
}

type ScopeProps = { scopes: readonly { value: string; label: string }[] }

/** Field for the group where the role applies. Hidden if there are no folders. */
export const scopeField = ({ scopes }: ScopeProps) =>
  scopes.length < 2
    ? []
    : [
        {
          name: 'scope',
          label: memberWords.scopeOfRole,
          type: 'select' as const,
          options: scopes,
          value: scopes[0]!.value,
        },
      ]
