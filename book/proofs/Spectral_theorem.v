(* The spectral theorem for symmetric matrices, which Theorems 4.5 and 4.7 quote.

   Formalized: a symmetric function a x y on a finite type over a real closed
   field is a sum of lam_i e_i(x) e_i(y) with orthonormal e_i, with lam_i not zero
   and in decreasing order. If a is a kernel, the lam_i are positive.
   The proof finds an eigenvalue over the algebraic closure R[i], shows that it
   is real, subtracts its eigenvector and repeats on the rest, of smaller rank. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From mathcomp Require Import complex.
From Proofs Require Import Finite.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Local Open Scope complex_scope.

Section Spectral.
Variable R : rcfType.

Definition dot n (u v : 'rV[R]_n) : R := (u *m v^T) 0 0.

Lemma dotE n (u v : 'rV[R]_n) : dot u v = \sum_i u 0 i * v 0 i.
Proof. by rewrite /dot mxE; apply: eq_bigr => i _; rewrite mxE. Qed.

Lemma dotC n (u v : 'rV[R]_n) : dot u v = dot v u.
Proof. by rewrite !dotE; apply: eq_bigr => i _; rewrite mulrC. Qed.

Lemma dotZl n c (u v : 'rV[R]_n) : dot (c *: u) v = c * dot u v.
Proof. by rewrite /dot -scalemxAl mxE. Qed.

Lemma dotZr n c (u v : 'rV[R]_n) : dot u (c *: v) = c * dot u v.
Proof. by rewrite dotC dotZl dotC. Qed.

Lemma dot_ge0 n (u : 'rV[R]_n) : 0 <= dot u u.
Proof. by rewrite dotE; apply: sumr_ge0 => i _; rewrite -expr2 sqr_ge0. Qed.

Lemma dot_eq0 n (u : 'rV[R]_n) : dot u u = 0 -> u = 0.
Proof.
rewrite dotE => /eqP; rewrite psumr_eq0 => [/allP h|i _]; last by rewrite -expr2 sqr_ge0.
apply/rowP => i; rewrite mxE; have := h i (mem_index_enum _).
by rewrite /= -expr2 sqrf_eq0 => /eqP.
Qed.

Lemma square_eq0 n (M : 'M[R]_n) : M *m M^T = 0 -> M = 0.
Proof.
move=> h; apply/row_matrixP => i; rewrite row0; apply: dot_eq0; rewrite dotE.
have := congr1 (fun N : 'M[R]_n => N i i) h; rewrite !mxE => e; rewrite -[RHS]e.
by apply: eq_bigr => j _; rewrite !mxE.
Qed.

Lemma nilpotent_eq0 n (A : 'M[R]_n.+1) j : A^T = A -> A ^+ (2 ^ j) = 0 -> A = 0.
Proof.
move=> sA; have tX k : (A ^+ k)^T = A ^+ k.
  elim: k => [|k IH]; first by rewrite expr0 trmx1.
  by rewrite {1}exprS -mulmxE trmx_mul IH sA mulmxE -exprSr.
elim: j => [|j IH]; first by rewrite expn0 expr1.
rewrite expnS mulnC exprM expr2 => h; apply: IH; apply: square_eq0.
by rewrite tX mulmxE.
Qed.

Lemma eigen_pair n (A : 'M[R]_n) : A^T = A -> A != 0 ->
  exists a (x : 'rV[R]_n), [/\ a != 0, x != 0 & x *m A = a *: x].
Proof.
case: n A => [|n] A sA A0; first by rewrite [A]flatmx0 eqxx in A0.
pose f := [rmorphism of real_complex R]; pose B := map_mx f A.
have [r rE] := closed_field_poly_normal (char_poly B).
rewrite (monicP (char_poly_monic B)) scale1r in rE.
have [/hasP[z zr z0]|/hasPn all0] := boolP (has (fun z => z != 0) r); last first.
  have charE : char_poly A = 'X^(size r).
    apply: (map_poly_inj f); rewrite map_char_poly map_polyXn -/B rE.
    rewrite (eq_big_seq (fun=> 'X)) ?big_const_seq ?count_predT ?iter_mulr_1 //.
    by move=> z /all0; rewrite negbK => /eqP ->; rewrite subr0.
  have := Cayley_Hamilton A; rewrite charE rmorphX /= horner_mx_X => An.
  case/eqP: A0; apply: (@nilpotent_eq0 _ _ (size r)) => //.
  have /subnK <- : (size r <= 2 ^ size r)%N by rewrite ltnW // ltn_expl.
  by rewrite exprD An mulr0.
have /eigenvalueP[v vB v0] : eigenvalue B z.
  by rewrite eigenvalue_root_char rE root_prod_XsubC.
case: z zr z0 vB => a b zr z0 vB.
pose x : 'rV[R]_n.+1 := \row_i complex.Re (v 0 i); pose y : 'rV[R]_n.+1 := \row_i complex.Im (v 0 i).
have vE i : v 0 i = x 0 i +i* y 0 i by rewrite !mxE; case: (v 0 i).
have coord i : (v *m B) 0 i = (x *m A) 0 i +i* (y *m A) 0 i.
  rewrite !mxE (eq_bigr (fun j => (x 0 j * A j i) +i* (y 0 j * A j i))); last first.
    by move=> j _; rewrite vE [B j i]mxE /=; simpc.
  elim: (index_enum _) => [|j js IH]; first by rewrite !big_nil.
  by rewrite !big_cons IH; simpc.
have xA : x *m A = a *: x - b *: y.
  by apply/rowP => i; have := coord i; rewrite vB !mxE vE !mxE; simpc => -[<- _].
have yA : y *m A = b *: x + a *: y.
  apply/rowP => i; have := coord i; rewrite vB !mxE vE !mxE; simpc => -[_ <-].
  by rewrite addrC.
have sym u w : dot (u *m A) w = dot (w *m A) u.
  have e : u *m A *m w^T = (w *m A *m u^T)^T by rewrite !trmx_mul trmxK sA mulmxA.
  by rewrite /dot e mxE.
have dotDl u w t : dot (u + w) t = dot u t + dot w t by rewrite /dot mulmxDl mxE.
have dotNl u t : dot (- u) t = - dot u t by rewrite /dot mulNmx mxE.
have b0 : b = 0.
  have := sym x y; rewrite xA yA !dotDl dotNl !dotZl [dot y x]dotC => e.
  have /eqP : b * (dot x x + dot y y) = 0.
    have -> : b * (dot x x + dot y y) = (b * dot x x + a * dot x y) - (a * dot x y - b * dot y y) by ring.
    by rewrite e subrr.
  rewrite mulf_eq0 => /orP[/eqP //|].
  rewrite paddr_eq0 ?dot_ge0 // => /andP[/eqP /dot_eq0 x0 /eqP /dot_eq0 y0].
  by case/eqP: v0; apply/rowP => i; rewrite vE x0 y0 !mxE.
have a0 : a != 0 by apply: contraNneq z0 => a0; rewrite a0 b0.
have [x0|x0] := eqVneq x 0; last by exists a, x; split=> //; rewrite xA b0 scale0r subr0.
exists a, y; split=> //; last by rewrite yA b0 scale0r add0r.
by apply: contraNneq v0 => y0; apply/eqP/rowP => i; rewrite vE x0 y0 !mxE.
Qed.

Lemma spectral_matrix n (A : 'M[R]_n) : A^T = A ->
  exists r (lam : 'I_r -> R) (e : 'I_r -> 'rV[R]_n),
    [/\ forall i, lam i != 0, forall i, (e i <= A)%MS,
        forall i j, dot (e i) (e j) = (i == j)%:R
      & A = \sum_i lam i *: ((e i)^T *m e i)].
Proof.
have [m] := ubnP (\rank A); elim: m => // m IH in A *; rewrite ltnS => rank_m sA.
have [A0|A0] := eqVneq A 0.
  exists 0%N, (fun=> 0), (fun=> 0).
  by split=> [[]|[]|[]|] //; rewrite big_ord0.
have [a [x [a0 x0 xA]]] := eigen_pair sA A0.
have xx : 0 < dot x x.
  rewrite lt_neqAle dot_ge0 andbT eq_sym; apply: contraNneq x0 => /dot_eq0 ->; exact: eqxx.
pose e := (Num.sqrt (dot x x))^-1 *: x.
have ee : dot e e = 1.
  rewrite dotZl dotZr mulrA -expr2 exprVn sqr_sqrtr ?ltW // mulVf //; exact: lt0r_neq0.
have eA : e *m A = a *: e by rewrite -scalemxAl xA !scalerA mulrC.
pose B := A - a *: (e^T *m e).
have sB : B^T = B by rewrite /B linearB linearZ /= trmx_mul trmxK sA.
have eB : e *m B = 0.
  rewrite mulmxBr eA -scalemxAr mulmxA (_ : e *m e^T = 1%:M) ?mul1mx ?subrr //.
  by apply/matrixP => i j; rewrite !ord1 [RHS]mxE -[LHS]/(dot e e) ee.
have orth (u : 'rV[R]_n) : (u <= B)%MS -> dot e u = 0.
  by case/submxP => D ->; rewrite /dot trmx_mul sB mulmxA eB mul0mx mxE.
have eInA : (e <= A)%MS.
  have -> : e = a^-1 *: (e *m A) by rewrite eA scalerA mulVf // scale1r.
  by rewrite scalemx_sub // submxMl.
have BA : (B <= A)%MS.
  by rewrite addmx_sub // -scaleNr scalemx_sub // mulmx_sub.
have rank_lt : (\rank B < m)%N.
  apply: leq_trans rank_m; rewrite ltn_neqAle mxrankS // andbT.
  apply/negP => /eqP eqr; have /andP[_ AB] : (B == A)%MS by rewrite -(geq_leqif (mxrank_leqif_eq BA)) eqr.
  by have := orth e (submx_trans eInA AB); rewrite ee => /eqP; rewrite oner_eq0.
have [r [lam [es [lam0 esB on BE]]]] := IH B rank_lt sB.
exists r.+1, (fun i => if unlift ord0 i is Some j then lam j else a).
exists (fun i => if unlift ord0 i is Some j then es j else e); split.
- by move=> i; case: unliftP.
- by move=> i; case: unliftP => [j _|_] //; exact: submx_trans (esB j) BA.
- move=> i j; case: unliftP => [i' ->|->]; case: unliftP => [j' ->|->].
  + by rewrite on (inj_eq lift_inj).
  + by rewrite dotC orth // eq_sym (negbTE (neq_lift _ _)).
  + by rewrite orth // (negbTE (neq_lift _ _)).
  + by rewrite ee eqxx.
- rewrite big_ord_recl unlift_none.
  under eq_bigr do rewrite liftK.
  by rewrite -BE /B addrC subrK.
Qed.

(* begin Spectral theorem *)
Theorem spectral (T : finType) (a : T -> T -> R) :
  (forall x y, a x y = a y x) ->
  exists r (lam : 'I_r -> R) (e : 'I_r -> T -> R),
    [/\ forall i, lam i != 0,
        forall i j : 'I_r, (i <= j)%N -> lam j <= lam i,
        forall i j, \sum_x e i x * e j x = (i == j)%:R
      & forall x y, a x y = \sum_i lam i * (e i x * e i y)].
(* end Spectral theorem *)
Proof.
move=> sa; pose A := \matrix_(i, j) a (enum_val i) (enum_val j) : 'M[R]_#|T|.
have sA : A^T = A by apply/matrixP => i j; rewrite !mxE sa.
have [r [lam [e [lam0 _ on AE]]]] := spectral_matrix sA.
pose down i j := lam j <= lam i.
pose order := sort down (enum 'I_r).
have size_order : size order = r by rewrite size_sort size_enum_ord.
have uniq_order : uniq order by rewrite sort_uniq enum_uniq.
pose g (i : 'I_r) := nth i order i.
have g_inj : injective g.
  move=> i j; rewrite /g (set_nth_default i) ?size_order // => /eqP.
  by rewrite nth_uniq ?size_order // => /eqP /val_inj.
have down_trans : transitive down by move=> x y z; rewrite /down => h /le_trans -> //.
have sorted_order : sorted down order.
  by apply: sort_sorted => x y; rewrite /down; exact: le_total.
exists r, (fun i => lam (g i)), (fun i x => e (g i) 0 (enum_rank x)); split=> //.
- move=> i j ij; rewrite /g (set_nth_default i) ?size_order // -[_ <= _]/(down _ _).
  apply: (sorted_leq_nth down_trans) => //; first by move=> x; exact: lexx.
  + by rewrite inE size_order.
  + by rewrite inE size_order.
- move=> i j; rewrite -(inj_eq g_inj) -on dotE.
  by rewrite (reindex (@enum_rank T)) //; apply: onW_bij; exact: enum_rank_bij.
- move=> x y; transitivity (A (enum_rank x) (enum_rank y)); first by rewrite mxE !enum_rankK.
  rewrite AE summxE (reindex g); last by apply: onW_bij; exact: injF_bij.
  by apply: eq_bigr => i _; rewrite !mxE big_ord_recl big_ord0 addr0 mxE.
Qed.

(* begin Spectral theorem, kernels *)
Theorem spectral_kernel (T : finType) (a : T -> T -> R) :
  kernel a ->
  exists r (lam : 'I_r -> R) (e : 'I_r -> T -> R),
    [/\ forall i, 0 < lam i,
        forall i j : 'I_r, (i <= j)%N -> lam j <= lam i,
        forall i j, \sum_x e i x * e j x = (i == j)%:R
      & forall x y, a x y = \sum_i lam i * (e i x * e i y)].
(* end Spectral theorem, kernels *)
Proof.
move=> [sa pa]; have [r [lam [e [lam0 down on aE]]]] := spectral sa.
exists r, lam, e; split=> // i; rewrite lt_neqAle eq_sym lam0 /=.
have := pa (e i); rewrite /quad (eq_kernel_form _ _ aE) form_squares (bigD1 i) //= on eqxx !mulr1.
by rewrite big1 ?addr0 // => j; rewrite eq_sym => /negbTE ji; rewrite on ji mul0r mulr0.
Qed.

End Spectral.
