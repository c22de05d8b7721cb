// Content that needs a permission.
import type { ComponentChildren } from 'preact'
import { isKnown } from '../app/session.ts'
import { Empty, Waiting } from './states.tsx'

type Props = { isAllowed: boolean; otherwise: string; children: ComponentChildren }

/** Shows the content if the user has the permission, or else a message. Shows neither until the permissions are loaded. */
export function Allowed({ isAllowed, otherwise, children }: Props) {
  if (!isKnown()) return <Waiting />
  return isAllowed ? children : <Empty>{otherwise}</Empty>
}
