// Filters of the audit log: person, action, resource and time. They are in the address.
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { AuditAction, Group, Role, RoleBinding } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Picker } from '../../ui/picker.tsx'
import type { Option } from '../../ui/picker-options.ts'
import { auditWords } from '../../words/audit.ts'
import type { AuditQuery } from './query.ts'

const most = 200

type Props = { group: string; names: readonly string[]; given: AuditQuery }

export function Filters({ group, given, names }: Props) {
  const read = useLoad(`audit filters ${group}`, (signal) => readOptions(group, names, signal))
  const { people = [], actions = [], resources = [] } = read.data ?? {}
  const choose = (change: Partial<AuditQuery>) => go(paths.with(here(), { ...change, page: undefined }))
  const isLoading = read.data === undefined && read.error === undefined
  const resource = given.folder || given.subject
  return (
    <search class="filters">
      <Picker
        label={auditWords.auditPerson}
        options={withChosen([{ value: '', label: auditWords.everyone }, ...people], given.actor)}
        value={given.actor}
        onChoose={(actor) => choose({ actor })}
        isLoading={isLoading}
      />
      <Picker
        label={auditWords.auditAction}
        options={withChosen([{ value: '', label: auditWords.allActions }, ...actions], given.type)}
        value={given.type}
        onChoose={(type) => choose({ type })}
        isLoading={isLoading}
      />
      <Picker
        label={auditWords.auditResource}
        options={withChosen([{ value: '', label: auditWords.allResources }, ...resources], resource)}
        value={resource}
        onChoose={(uid) =>
          choose(
            resources.find(({ value }) => value === uid)?.isFolder
              ? { folder: uid, subject: '' }
              : { folder: '', subject: uid },
          )
        }
        isLoading={isLoading}
      />
      <p class="field">
        <label for="audit-days">{auditWords.auditPeriod}</label>
        <select
          id="audit-days"
          value={given.days}
          onChange={(event) => choose({ days: (event.target as HTMLSelectElement).value })}
        >
          {Object.entries(auditWords.periods).map(([value, label]) => (
            <option key={value} value={value} selected={value === given.days}>
              {label}
            </option>
          ))}
        </select>
      </p>
    </search>
  )
}

/** An entry of the log can be filtered by a resource that the lists do not have, such as a removed person. */
function withChosen(options: readonly Option[], value: string): readonly Option[] {
  return options.some((one) => one.value === value) ? options : [...options, { value, label: auditWords.chosen }]
}

type Resource = Option & { isFolder: boolean }
type Options = { people: Option[]; actions: Option[]; resources: Resource[] }

/** Reads the names to choose from. Lists that the user cannot see are left out. */
async function readOptions(group: string, names: readonly string[], signal: AbortSignal): Promise<Options> {
  const query = { 'uidp.descendantsOf': group }
  const listed = async <T,>(isAllowed: boolean, path: string, member: string): Promise<T[]> =>
    isAllowed ? (await readPage<T>(path, member, { size: most, query, signal })).items : []
  const [{ actions }, bindings, groups, roles] = await Promise.all([
    ask<{ actions: AuditAction[] }>('GET', '/control/v1/auditActions', { signal }),
    listed<RoleBinding>(can('role_bindings.list', group), '/iam/v2/roleBindings', 'roleBindings'),
    listed<Group>(can('groups.list', group), '/iam/v2/groups', 'groups'),
    listed<Role>(can('role_bindings.list', group), '/iam/v2/roles', 'roles'),
  ])
  const people = new Map(bindings.map(({ identity }) => [identity.uid, identity]))
  const members = [...people.values()]
    .filter(({ name, email }) => name !== '' || email !== '')
    .map(({ uid, name, email }) => ({
      ...{ value: uid, label: email || name },
      description: uid.includes('/') ? auditWords.serviceAccount : name,
    }))
    .sort((a, b) => a.label.localeCompare(b.label))
  const pathOf = folderPaths(group, names, groups)
  return {
    people: members,
    actions: actions.map(({ type, title, area }) => ({ value: type, label: title, description: area })),
    resources: [
      ...groups
        .filter(({ uid }) => uid !== group)
        .map(({ uid }) => ({ value: uid, label: pathOf(uid), description: auditWords.folder, isFolder: true })),
      ...members.map((one) => ({ ...one, isFolder: false })),
      ...roles
        .filter(({ uid }) => uid.includes('/'))
        .map(({ uid, name }) => ({ value: uid, label: name, description: auditWords.roleOption, isFolder: false })),
    ],
  }
}

/** Path of each folder, from the organization on. */
function folderPaths(group: string, names: readonly string[], groups: readonly Group[]): (uid: string) => string {
  const own = new Map(groups.map(({ uid, name }) => [uid, name]))
  const pathOf = (uid: string): string =>
    uid === group || !uid.includes('/')
      ? names.join('/')
      : `${pathOf(uid.slice(0, uid.lastIndexOf('/')))}/${own.get(uid) ?? '…'}`
  return pathOf
}
