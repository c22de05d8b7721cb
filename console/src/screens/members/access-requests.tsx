// Requests of people to join an organization. Members who can invite approve them with a role, or refuse them.
import { useState } from 'preact/hooks'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { AccessRequest, Group } from '../../data/types.ts'
import { ActButton, Dialog, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { memberWords } from '../../words/members.ts'
import { words } from '../../words.ts'
import { readRoles } from '../people/roles.ts'
import { defaultRole, RoleChoice } from './role-choice.tsx'

const root = '/control/v1/accessRequests'

/** Shows nothing if no request waits. */
export function AccessRequests({ organization }: { organization: Group }) {
  const [approved, setApproved] = useState<AccessRequest>()
  const read = useLoad(`access requests ${organization.uid}`, (signal) =>
    readPage<AccessRequest>(`${root}/${organization.uid}`, 'accessRequests', { size: 200, signal }),
  )
  const whoOf = ({ name, email }: AccessRequest) => name || email
  return (
    <Shown of={read}>
      {(page) =>
        page.items.length > 0 && (
          <>
            <h2>{memberWords.accessRequests}</h2>
            <Cut of={page} />
            <Table
              caption={memberWords.accessRequests}
              items={page.items}
              keyOf={({ uid }) => uid}
              columns={[
                {
                  title: words.name,
                  isHead: true,
                  cell: ({ name, email }) => <bdi>{name && email ? `${name} (${email})` : name || email}</bdi>,
                },
                { title: memberWords.requestedAt, cell: ({ askTime }) => <Time at={askTime} /> },
                {
                  title: words.actions,
                  cell: (one) => (
                    <>
                      <button
                        type="button"
                        class="small"
                        aria-label={memberWords.approveOf(whoOf(one))}
                        onClick={() => setApproved(one)}
                      >
                        {memberWords.approveRequest}
                      </button>{' '}
                      <ActButton
                        label={memberWords.refuseOf(whoOf(one))}
                        act={async () => {
                          await ask('POST', `${root}/${one.uid}:refuse`, { body: {} })
                          read.reload()
                        }}
                      >
                        {memberWords.refuseRequest}
                      </ActButton>
                    </>
                  ),
                },
              ]}
            />
            {approved && (
              <ApproveDialog
                request={approved}
                organization={organization.uid}
                onClose={() => setApproved(undefined)}
                onDone={read.reload}
              />
            )}
          </>
        )
      }
    </Shown>
  )
}

type Approval = { request: AccessRequest; organization: string; onClose: () => void; onDone: () => void }

function ApproveDialog({ request, organization, onClose, onDone }: Approval) {
  const [chosen, setRole] = useState<string>()
  const read = useLoad(`roles ${organization}`, (signal) => readRoles(organization, signal))
  const approve = async (roleUid: string) => {
    await ask('POST', `${root}/${request.uid}:approve`, { body: { roleUid } })
    onClose()
    onDone()
  }
  return (
    <Dialog title={memberWords.approveOf(request.name || request.email)} onClose={onClose}>
      <Shown of={read}>
        {(roles) => {
          const role = chosen ?? defaultRole(roles)
          return (
            <Form submit={memberWords.approveRequest} fields={[]} onSubmit={() => approve(role)}>
              <RoleChoice roles={roles} value={role} onChoose={setRole} />
            </Form>
          )
        }}
      </Shown>
    </Dialog>
  )
}
