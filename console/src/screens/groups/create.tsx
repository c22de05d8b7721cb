// Buttons that create an organization, a folder or a repository, and then open it.
import { useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { forgetPaths } from '../../data/names.ts'
import type { Group } from '../../data/types.ts'
import { Dialog, Form } from '../../ui/form.tsx'
import { Icon } from '../../ui/icon.tsx'
import { showToast } from '../../ui/toast.tsx'
import { creationWords } from '../../words/creation.ts'
import { words } from '../../words.ts'

type Kind = 'organization' | 'folder' | 'repository'
type Props = { kind: Kind; parent: string; names: readonly string[]; isPrimary?: boolean }

const texts: Record<Kind, { button: string; submit: string; hint: string; path: string }> = {
  organization: {
    button: creationWords.newOrganization,
    submit: creationWords.newOrganization,
    hint: creationWords.orgNameHint,
    path: '/iam/v2/groups',
  },
  folder: {
    button: creationWords.newFolder,
    submit: creationWords.submitFolder,
    hint: creationWords.folderHint,
    path: '/iam/v2/groups',
  },
  repository: {
    button: creationWords.newRepository,
    submit: creationWords.createRepository,
    hint: creationWords.repositoryHint,
    path: '/registry/v2/repos',
  },
}

export function CreateButton({ kind, parent, names, isPrimary = false }: Props) {
  const [isOpen, setOpen] = useState(false)
  const { button, submit, hint, path } = texts[kind]
  const create = async ({ name = '', description = '' }: Record<string, string>) => {
    await ask('POST', parent === '' ? path : `${path}/${parent}`, { body: { name, description } })
    forgetPaths()
    showToast(creationWords.created(name))
    go(kind === 'repository' ? paths.repo([...names, name]) : paths.group([...names, name]))
  }
  return (
    <>
      <button type="button" class={isPrimary ? 'primary' : ''} onClick={() => setOpen(true)}>
        <Icon name="add" />
        {button}
      </button>
      {isOpen && (
        <Dialog title={button} onClose={() => setOpen(false)}>
          <Form
            submit={submit}
            onSubmit={create}
            fields={[
              { name: 'name', label: words.name, hint },
              { name: 'description', label: words.description, isOptional: true },
            ]}
          />
        </Dialog>
      )}
    </>
  )
}

/** Actions of the page of a group: create a folder or a repository in it. */
export function CreateHere({ group, names }: { group: Group; names: readonly string[] }) {
  return (
    <>
      {can('groups.create', group.uid) && <CreateButton kind="folder" parent={group.uid} names={names} />}
      {can('repo.create', group.uid) && <CreateButton kind="repository" parent={group.uid} names={names} isPrimary />}
    </>
  )
}
