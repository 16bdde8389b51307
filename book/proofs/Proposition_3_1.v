(* Proposition 3.1: the conditions that are equivalent to independence.

   Formalized: the four conditions of the paper; then the two kernel forms, by
   the expected squared MMD of a characteristic kernel k_Z and by HSIC with a
   characteristic product kernel.
   Weaker than the paper: Z and S take finitely many values. There is then one
   regular conditional law, up to values s of probability zero.
   Hypotheses: p is a joint law. A class F is characteristic if its IPM is zero
   for equal laws only. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section ZeroLevel.
Variables (R : realFieldType) (Z S : finType) (p : Z -> S -> R).

(* begin Proposition 3.1 *)
Definition characteristic_class (T : finType) (F : (T -> R) -> Prop) : Prop :=
  forall P Q : T -> R, law P -> law Q -> ipm F P Q 0 -> forall x, P x = Q x.

Definition equal_conditionals : Prop :=
  forall s, marginal_s p s != 0 -> forall z, conditional p s z = marginal_z p z.

Definition equal_means : Prop :=
  forall (g : Z -> R) s, marginal_s p s != 0 -> mean (conditional p s) g = mean (marginal_z p) g.

Theorem equivalence (F : (Z * S -> R) -> Prop) :
  joint_law p -> characteristic_class F ->
  [/\ ipm F (joint p) (product p) 0 <-> independent p,
      independent p <-> equal_conditionals
    & equal_conditionals <-> equal_means].
(* end Proposition 3.1 *)
Proof.
move=> p_law cF.
split; split.
- by move=> h z s; have := cF _ _ (joint_is_law p_law) (product_is_law p_law) h (z, s).
- move=> ind; split=> // a [f _ ->].
  rewrite (_ : mean (joint p) f = mean (product p) f) ?subrr ?normr0 //.
  by apply: eq_bigr => b _; rewrite /joint /product ind.
- by move=> ind s s0 z; rewrite /conditional ind mulfK.
- move=> h z s; rewrite (joint_conditional p_law).
  have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite mul0r mulr0.
  by rewrite h // mulrC.
- by move=> h g s s0; apply: eq_bigr => z _; rewrite h.
- move=> h s s0 z; have := h (point R z) s s0; rewrite /mean.
  by under eq_bigr do rewrite mulrC; under [RHS]eq_bigr do rewrite mulrC; rewrite !sum_point.
Qed.

(* begin Proposition 3.1, kernel forms *)
Theorem kernel_forms (k : Z -> Z -> R) (l : S -> S -> R) :
  joint_law p -> kernel k -> characteristic k -> characteristic (product_kernel k l) ->
  (expected_mmd2 k p = 0 <-> independent p)
  /\ (hsic k l p = 0 <-> independent p).
(* end Proposition 3.1, kernel forms *)
Proof.
move=> p_law kk ck ckl.
have zero_quad (T : finType) (h : T -> T -> R) (u : T -> R) : (forall z, u z = 0) -> quad h u = 0.
  by move=> u0; rewrite /quad /form big1 // => x _; rewrite big1 // => y _; rewrite u0 !mul0r.
split; split.
- move=> /eqP; rewrite /expected_mmd2 psumr_eq0 => [/allP h|s _]; last first.
    by apply: mulr_ge0; [exact: marginal_s_ge0 | exact: (proj2 kk)].
  move=> z s; rewrite (joint_conditional p_law).
  have := h s (mem_index_enum _); rewrite /= mulf_eq0 => /orP[/eqP -> | /eqP m0].
    by rewrite mul0r mulr0.
  have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite mul0r mulr0.
  by rewrite (ck _ _ (conditional_law p_law s0) (marginal_z_law p_law) m0) mulrC.
- move=> ind; rewrite /expected_mmd2 big1 // => s _.
  have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite mul0r.
  by rewrite /mmd2 zero_quad ?mulr0 // => z; rewrite /conditional ind mulfK // subrr.
- by move=> h z s; have := ckl _ _ (joint_is_law p_law) (product_is_law p_law) h (z, s).
- by move=> ind; apply: zero_quad => a; rewrite /joint /product ind subrr.
Qed.

End ZeroLevel.

(* The kernel 1[x = y] satisfies the hypotheses. So does the class of all functions. *)
Example hypotheses_hold (R : realFieldType) :
  [/\ joint_law (@coin R), characteristic (@equal R bool_finType),
      characteristic (product_kernel (@equal R bool_finType) (@equal R bool_finType))
    & characteristic_class (fun _ : bool * bool -> R => True)].
Proof.
split; [exact: coin_law | by apply: strict_characteristic; exact: equal_strict | |].
  apply: strict_characteristic => u u0; apply: (@equal_strict R _ u); rewrite -u0.
  apply: eq_kernel_form => x y; case: x y => [x1 x2] [y1 y2].
  by rewrite /product_kernel /equal /= xpair_eqE -natrM mulnb.
move=> P Q _ _ [_ ub _] x; apply/eqP; rewrite -subr_eq0 -normr_le0.
apply: ub; exists (point R x) => //; rewrite /mean.
by congr (`|_ - _|); [under [RHS]eq_bigr do rewrite mulrC | under [RHS]eq_bigr do rewrite mulrC];
  rewrite sum_point.
Qed.
