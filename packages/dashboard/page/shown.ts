import { shownText } from '@piecework/protocol/contract';
import { options, type VNode } from 'preact';

/*
 * All texts of the page pass here on their way into the document: characters that nobody sees, such as marks of the
 * direction, become escapes by the rule of the command line. So no text hides words or shows them in another order.
 */

/** Line ends and tabs are for the style sheet. */
const KEPT = '\n\r\t';
/** Attributes that people read or hear. */
const READ = ['title', 'aria-label', 'label', 'placeholder'] as const;

/** From now on; to be called before anything is rendered. */
export function showHidden(): void {
  const before = options.vnode;
  options.vnode = (vnode: VNode) => {
    // Of a text, it is the text.
    const props = vnode.props as string | Record<string, unknown>;
    if (typeof props === 'string') vnode.props = shown(props) as unknown as VNode['props'];
    else if (typeof vnode.type === 'string')
      for (const name of READ) if (name in props) props[name] = shown(props[name]);
    before?.(vnode);
  };
}

const shown = <T>(text: T): T | string => (typeof text === 'string' ? shownText(text, KEPT) : text);
