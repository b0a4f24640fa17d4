/* What markdown.js uses of marked; the page has it as vendor/marked.js, which the build puts there. */
export class Lexer {
  constructor(options: { gfm: boolean, breaks: boolean });
  tokens: any[] & { links?: object };
  inlineQueue: { src: string, tokens: any[] }[];
  blockTokens(text: string, tokens: any[]): any[];
  inlineTokens(text: string, tokens: any[]): any[];
}
