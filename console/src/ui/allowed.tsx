// Content that needs a permission.
import type { ComponentChildren } from 'preact'
import { isKnown } from '../app/session.ts'
import { Empty, Waiting } from './states.tsx'

type Props = { isAllowed: boolean; otherwise: string; children: ComponentChildren }

/** Shows the content, or a message without the permission. Waits until the permissions are known. */
export function Allowed({ isAllowed, otherwise, children }: Props) {
  if (!isKnown()) return <Waiting />
  return isAllowed ? children : <Empty>{otherwise}</Empty>
}
